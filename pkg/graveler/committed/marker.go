// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/xid"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

const (
	// sweepDir holds what sweeps put beside the files of trees: markers, and files that are put to ask for the time.
	sweepDir    = "sweeps/"
	runPrefix   = sweepDir + "run-"
	clockPrefix = sweepDir + "clock-"

	markerHead = "moraine sweep 1 %d\n"
	// maxMarker is more than any marker has, in bytes.
	maxMarker = 128 * sweepBatch
	// markerPoll is how often a builder looks whether a sweep is over.
	markerPoll = 100 * time.Millisecond
)

var errMarker = errors.New("damaged marker of a sweep")

// isSweepFile tells the files in sweepDir from what else may be there, such as those of a namespace below.
func isSweepFile(name string) bool { return isMarker(name) || hasID(name, clockPrefix) }

func isMarker(name string) bool { return hasID(name, runPrefix) }

func hasID(name, prefix string) bool {
	id, ok := strings.CutPrefix(name, prefix)
	_, err := xid.FromString(id)
	return ok && err == nil
}

// encodeMarker gives the contents of a marker: a line with the version and the number of files, and one with the name of each.
func encodeMarker(ids []rangefile.ID) []byte {
	b := fmt.Appendf(nil, markerHead, len(ids))
	for _, id := range ids {
		b = append(append(b, fileName(id)...), '\n')
	}
	return b
}

func decodeMarker(b []byte) (names []string, err error) {
	var n int
	head, rest, _ := bytes.Cut(b, []byte("\n"))
	if _, err := fmt.Sscanf(string(head)+"\n", markerHead, &n); err != nil {
		return nil, fmt.Errorf("%w: its first line is %.40q", errMarker, head)
	}
	for line := range strings.Lines(string(rest)) {
		names = append(names, strings.TrimSuffix(line, "\n"))
	}
	if len(names) != n || !bytes.HasSuffix(b, []byte("\n")) {
		return nil, fmt.Errorf("%w: it names %d files and says %d", errMarker, len(names), n)
	}
	return names, nil
}

// young reports whether a file that is in place at a time needs no refreshing to be relied on.
func young(info block.Info, now time.Time) bool { return now.Sub(info.ModTime) < refreshAfter }

// settle makes the files of a build durable, all of which have been put or refreshed. Those that were removed meanwhile are graveler.ErrSwept.
func (f *files) settle(ctx context.Context, names []string) error {
	if err := f.awaitSweeps(ctx, names); err != nil {
		return fmt.Errorf("look for sweeps in %s: %w", f.ns, err)
	}
	err := f.storage.Sync(ctx, names)
	if errors.Is(err, block.ErrNotFound) {
		return fmt.Errorf("%w: %s", graveler.ErrSwept, err.Error()) // nothing that is referred to is missing
	}
	return err
}

// sighting is a marker that a builder has met.
type sighting struct {
	block.Info
	err error // why it cannot be read
}

// awaitSweeps waits until no sweep that it finds under way can delete one of the files any more.
func (f *files) awaitSweeps(ctx context.Context, names []string) error {
	met, err := f.sightings(ctx, names)
	if err != nil || len(met) == 0 {
		return err
	}
	now, err := f.time(ctx)
	if err != nil {
		return err
	}
	asked := time.Now()
	for _, m := range met {
		left := sweepLease - now.Sub(m.ModTime)
		if left <= 0 {
			continue
		}
		if m.err != nil {
			return m.err
		}
		if err := f.awaitEnd(ctx, m.Name, asked.Add(left)); err != nil {
			return err
		}
	}
	return nil
}

// sightings gives the markers that name one of the files, or cannot be read.
func (f *files) sightings(ctx context.Context, names []string) (met []sighting, err error) {
	var own map[string]bool
	for info, err := range f.storage.List(ctx, runPrefix) {
		if err != nil {
			return nil, err
		}
		if !isMarker(info.Name) {
			continue
		}
		if own == nil {
			own = make(map[string]bool, len(names))
			for _, name := range names {
				own[name] = true
			}
		}
		concerned, err := f.concerns(ctx, info, own)
		if concerned || err != nil {
			met = append(met, sighting{info, err})
		}
	}
	return met, nil
}

func (f *files) concerns(ctx context.Context, marker block.Info, own map[string]bool) (bool, error) {
	if marker.Size > maxMarker {
		return false, fmt.Errorf("%s: %w: it has %d bytes", marker.Name, errMarker, marker.Size)
	}
	data, err := f.storage.Get(ctx, marker.Name)
	if errors.Is(err, block.ErrNotFound) {
		return false, nil // the sweep is over
	}
	if err != nil {
		return false, err
	}
	names, err := decodeMarker(data)
	if err != nil {
		return false, fmt.Errorf("%s: %w", marker.Name, err)
	}
	for _, name := range names {
		if own[name] {
			return true, nil
		}
	}
	return false, nil
}

// awaitEnd waits until a marker is gone, or counts no longer.
func (f *files) awaitEnd(ctx context.Context, marker string, end time.Time) error {
	for time.Until(end) > 0 {
		if _, err := f.storage.Stat(ctx, marker); err != nil {
			if errors.Is(err, block.ErrNotFound) {
				return nil
			}
			return err
		}
		poll := time.NewTimer(min(markerPoll, max(0, time.Until(end))))
		select {
		case <-ctx.Done():
			poll.Stop()
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}
