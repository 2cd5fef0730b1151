// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"errors"
	"fmt"
	"io"
	"iter"
)

// sequence turns a function that emits items until emit returns false into a sequence whose last element carries the function's error, if it has one.
func sequence[T any](run func(emit func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped := false
		err := run(func(item T) bool {
			stopped = !yield(item, nil)
			return !stopped
		})
		if err != nil && !stopped {
			var none T
			yield(none, err)
		}
	}
}

// closing closes all and returns err, or what closing gave where err is nil: an iterator's Close repeats the error that ended it.
func closing(err error, all ...io.Closer) error {
	var closed []error
	for _, c := range all {
		closed = append(closed, c.Close())
	}
	if err != nil {
		return err
	}
	return errors.Join(closed...)
}

// Page collects at most limit items of a sequence, for handlers of requests that answer page by page: the next page starts
// after the last item of this one. more tells whether there are further items. A limit below 1 is ErrInvalidValue.
func Page[T any](items iter.Seq2[T, error], limit int) (page []T, more bool, err error) {
	if limit < 1 {
		return nil, false, fmt.Errorf("%w: a page of %d items", ErrInvalidValue, limit)
	}
	for item, err := range items {
		if err != nil {
			return nil, false, err
		}
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, item)
	}
	return page, false, nil
}
