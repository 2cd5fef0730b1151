// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"time"
)

func (p *pass) most() int { return p.chunk }

func (p *pass) sliceOver(ctx context.Context, since time.Time) bool {
	limit := p.MaxRuntime / 10
	if d, ok := ctx.Deadline(); ok {
		limit = min(limit, d.Sub(since)/2)
	}
	return time.Since(since) >= limit
}

func unsaved(err error) error { return err }
