// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"errors"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Outcome adds to an error of a [kv.Store] the error of package graveler that says the same, where
// there is one. A key that is not found has none: what was looked for decides.
func Outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kv.ErrPredicateFailed):
		return as(graveler.ErrChanged, err)
	case errors.Is(err, kv.ErrFenceFailed):
		return as(graveler.ErrFenceFailed, err)
	case errors.Is(err, kv.ErrTooLarge):
		return as(graveler.ErrTooLarge, err)
	case errors.Is(err, kv.ErrMissingPartition), errors.Is(err, kv.ErrMissingKey), errors.Is(err, kv.ErrDuplicateKey):
		return as(graveler.ErrInvalidValue, err)
	case errors.Is(err, kv.ErrReadOnly):
		return as(graveler.ErrReadOnly, err)
	case errors.Is(err, kv.ErrClosed):
		return as(graveler.ErrClosed, err)
	default:
		return err
	}
}

func as(outcome, err error) error { return fmt.Errorf("%w: %w", outcome, err) }
