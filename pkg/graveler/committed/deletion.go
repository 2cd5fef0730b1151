// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/xid"

	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// errLate ends deletions whose marker may soon count no longer.
var errLate = fmt.Errorf("deleting took longer than %s", sweepLimit)

// deletion deletes files that a marker names. It is safe for concurrent use.
type deletion struct {
	files *files
	began time.Time

	mu      sync.Mutex
	unknown bool // whether a deletion that was not acknowledged may yet take effect
}

// marked calls do, which may delete the files, while a marker names them. What do is to know of them it must look at itself,
// since all may have changed until the marker was there.
func (f *files) marked(ctx context.Context, ids []rangefile.ID, do func(ctx context.Context, d *deletion) error) error {
	d := &deletion{files: f, began: time.Now()}
	ctx, cancel := context.WithTimeoutCause(ctx, sweepLimit, errLate)
	defer cancel()
	marker := runPrefix + xid.New().String()
	err := f.storage.Put(ctx, marker, encodeMarker(ids))
	if err == nil {
		err = do(ctx, d)
	}
	if err != nil && errors.Is(context.Cause(ctx), errLate) && !errors.Is(err, errLate) {
		err = fmt.Errorf("%w: %w", errLate, err)
	}
	if d.unknown {
		return err // the marker has to stay until its lease is over
	}
	return errors.Join(err, f.discard(ctx, marker))
}

func (d *deletion) delete(ctx context.Context, id rangefile.ID) error {
	if d.late() {
		return errLate
	}
	err := d.files.storage.Delete(ctx, fileName(id))
	if err != nil {
		d.mu.Lock()
		d.unknown = true
		d.mu.Unlock()
	}
	return err
}

// late reports whether it is too late to delete. Of the two clocks the one stands still while the machine sleeps, the other may be set back.
func (d *deletion) late() bool {
	now := time.Now()
	return now.Sub(d.began) > sweepLimit || now.Round(0).Sub(d.began.Round(0)) > sweepLimit
}
