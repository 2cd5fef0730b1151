// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"context"
	"fmt"
	"log"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// A store with a repository, two staged entries, a commit and a listing. The URLs of a store on disk would be bolt:meta.db and file:blocks.
func Example() {
	ctx := context.Background()
	store, err := moraine.Open(ctx, moraine.Options{Store: "mem:", Blocks: "mem:"})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	_, err = store.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	for _, key := range []string{"a.csv", "b.csv"} {
		value := graveler.Value{Identity: []byte("v1 of " + key), Data: []byte("s3://bucket/7f3a")}
		if err == nil {
			err = store.Set(ctx, "lake", "main", graveler.Key(key), value)
		}
	}
	if err == nil {
		_, err = store.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "two files"})
	}
	for entry, listErr := range store.List(ctx, "lake", "main~0", graveler.ListOptions{}) {
		fmt.Printf("%s -> %s\n", entry.Key, entry.Value.Data)
		err = listErr
	}
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// a.csv -> s3://bucket/7f3a
	// b.csv -> s3://bucket/7f3a
}
