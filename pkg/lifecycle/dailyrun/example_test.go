// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

const document = `<LifecycleConfiguration>
  <Rule><ID>month</ID><Status>Enabled</Status><Filter/><Expiration><Days>30</Days></Expiration></Rule>
</LifecycleConfiguration>`

// A store that is opened for passes, too: they keep their records in the key/value store that the branches are in.
func Example() {
	pass := func(ctx context.Context) (err error) {
		records, err := kv.Open(ctx, "mem:", all.Engines(), kv.OpenOptions{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, records.Close()) }()
		s, err := moraine.Open(ctx, moraine.Options{KV: records, Blocks: "mem:"})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }() // before the records

		if _, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{}); err != nil {
			return err
		}
		rules, err := lifecycle.ParseXML([]byte(document))
		if err != nil {
			return err
		}
		if err := dailyrun.SetConfiguration(ctx, s, "lake", rules); err != nil {
			return err
		}
		report, err := dailyrun.Run(ctx, dailyrun.Config{Store: s, Records: records, Walker: walker.New(s)})
		if report != nil {
			fmt.Println(len(report.Shards), "shards,", report.Errors, "errors")
		}
		return err
	}
	if err := pass(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: 16 shards, 0 errors
}
