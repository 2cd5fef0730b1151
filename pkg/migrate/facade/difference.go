// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Difference is a read that the two sides answered differently.
type Difference struct {
	Kind Kind
	// Read says what was read, as in "branch lake/main".
	Read string
	// Answer and Shadow are what the side that has the kind and the other one said, for people.
	Answer, Shadow string
}

type report func(context.Context, Difference)

// compare reports that the answers to a read differ. Where the caller has given up it says nothing.
func (r report) compare(ctx context.Context, read string, answer, shadow any, err, shadowErr error) {
	if ctx.Err() != nil || sameOutcome(err, shadowErr) && (err != nil || reflect.DeepEqual(answer, shadow)) {
		return
	}
	r(ctx, Difference{Read: read, Answer: describe(answer, err), Shadow: describe(shadow, shadowErr)})
}

// sameOutcome reports whether both were answered, or both not found. Any other error is a difference, unless both sides have one.
func sameOutcome(a, b error) bool {
	return (a == nil) == (b == nil) && errors.Is(a, graveler.ErrNotFound) == errors.Is(b, graveler.ErrNotFound)
}

func describe(answer any, err error) string {
	if err != nil {
		return err.Error()
	}
	if v := reflect.ValueOf(answer); v.Kind() == reflect.Pointer && !v.IsNil() {
		answer = v.Elem().Interface()
	}
	return fmt.Sprintf("%+v", answer)
}

// alongside yields what the first scan yields, and reports the first difference from the second, which is read along.
func alongside[T any](ctx context.Context, r report, read string, answers, shadows iter.Seq2[T, error], plain func(T) any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		next, stop := iter.Pull2(shadows)
		defer stop()
		differs := false
		look := func(answer any, err error) {
			if differs {
				return
			}
			shadow, shadowErr, more := next()
			var other any
			switch {
			case !more:
				shadowErr = errEnd
			case shadowErr == nil:
				other = plain(shadow)
			}
			if differs = !sameStep(answer, other, err, shadowErr); differs {
				r.compare(ctx, read, answer, other, err, shadowErr)
			}
		}
		for answer, err := range answers {
			if err != nil {
				look(nil, err)
			} else {
				look(plain(answer), nil)
			}
			if !yield(answer, err) {
				return
			}
		}
		look(nil, errEnd)
	}
}

// errEnd stands for the end of a scan.
var errEnd = errors.New("nothing more")

func sameStep(a, b any, err, shadowErr error) bool {
	if err != nil || shadowErr != nil {
		return err != nil && shadowErr != nil && (err == errEnd) == (shadowErr == errEnd)
	}
	return reflect.DeepEqual(a, b)
}
