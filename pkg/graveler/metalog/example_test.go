// SPDX-License-Identifier: Apache-2.0

package metalog_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
)

// A program that follows a branch: it handles what has changed since the last time, as often as it likes.
func ExampleReader_Events() {
	ctx := context.Background()
	store, err := moraine.Open(ctx, moraine.Options{Store: "mem:", Blocks: "mem:"})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if _, err := store.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{}); err != nil {
		log.Fatal(err)
	}
	commit := func(key, identity string) {
		if err := store.Set(ctx, "lake", "main", graveler.Key(key), graveler.Value{Identity: []byte(identity)}); err != nil {
			log.Fatal(err)
		}
		if _, err := store.Commit(ctx, "lake", "main", graveler.CommitParams{}); err != nil {
			log.Fatal(err)
		}
	}

	feed := metalog.New(store)
	positions := map[string]int64{} // by branch UID, kept wherever this program keeps its state
	catchUp := func() error {
		sources, err := feed.Sources(ctx, "lake", "main")
		if err != nil {
			return err
		}
		for i := range sources {
			sources[i].After = positions[sources[i].UID]
		}
		reached := map[string]int64{}
		for e, err := range feed.Events(ctx, sources, 0, math.MaxInt64) {
			if err != nil {
				return err // the positions are what they were: the next attempt begins where this one did
			}
			fmt.Printf("%s %q\n", e.Kind, e.Key) // here the change is handled
			reached[e.UID] = e.Timestamp
		}
		for uid, time := range reached {
			positions[uid] = time
		}
		return nil
	}

	commit("a.csv", "v1")
	commit("b.csv", "v1")
	if err := catchUp(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("and later:")
	commit("a.csv", "v2")
	if err := catchUp(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// head ""
	// put "a.csv"
	// put "b.csv"
	// and later:
	// put "a.csv"
}
