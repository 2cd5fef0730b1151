// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"context"
	"errors"
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
	if err != nil && !errors.Is(err, graveler.ErrExists) {
		log.Fatal(err)
	}
	for _, key := range []string{"a.csv", "b.csv"} {
		value := graveler.Value{Identity: []byte("v1 of " + key), Data: []byte("s3://bucket/7f3a")}
		if err := store.Set(ctx, "lake", "main", graveler.Key(key), value); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := store.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "two files"}); err != nil {
		log.Fatal(err)
	}
	for entry, err := range store.List(ctx, "lake", "main@", graveler.ListOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s -> %s\n", entry.Key, entry.Value.Data)
	}
	// Output:
	// a.csv -> s3://bucket/7f3a
	// b.csv -> s3://bucket/7f3a
}
