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
	// Read says what was read, as in "branch main of lake".
	Read string
	// Answer and Shadow are what the side that has the kind and the other one said, for people.
	Answer, Shadow string
}

// String is one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s: answered %s, the other side says %s", d.Kind, d.Read, d.Answer, d.Shadow)
}

type report func(context.Context, Difference)

// of is a report about a kind.
func (r report) of(k Kind) report {
	return func(ctx context.Context, d Difference) {
		d.Kind = k
		r(ctx, d)
	}
}

// comparison says how records of a type are compared.
type comparison[T any] struct {
	// plain leaves out what each side has its own form of: stamps always, and more of a repository that was carried over.
	plain func(record T, carried bool) any
	// native: there is nothing to compare where the repository was carried over.
	native bool
	// met, if not nil, is told of two records that are compared where the repository was carried over.
	met func(answer, shadow T)
}

func as[T any]() comparison[T] {
	return comparison[T]{plain: func(record T, _ bool) any { return record }}
}

func native[T any]() comparison[T] {
	c := as[T]()
	c.native = true
	return c
}

// step is what one side said: a record or an error, which is errEnd at the end of a scan.
type step[T any] struct {
	record T
	err    error
}

// errEnd stands for the end of a scan.
var errEnd = errors.New("nothing more")

// compare reports what two sides said if that differs, and whether it does. Where the caller has given up it says nothing.
func compare[T any](ctx context.Context, r report, read string, c comparison[T], answer, shadow step[T], carried bool) (differs bool) {
	if carried && c.met != nil && answer.err == nil && shadow.err == nil {
		c.met(answer.record, shadow.record)
	}
	said := func(s step[T]) any {
		if s.err != nil {
			return s.err
		}
		return c.plain(s.record, carried)
	}
	a, s := said(answer), said(shadow)
	switch {
	case ctx.Err() != nil:
		return false
	case answer.err == nil && shadow.err == nil:
		differs = !reflect.DeepEqual(a, s)
	default:
		differs = !sameOutcome(answer.err, shadow.err)
	}
	if differs {
		r(ctx, Difference{Read: read, Answer: describe(a), Shadow: describe(s)})
	}
	return differs
}

// sameOutcome reports whether both found nothing, or are at the end of a scan. Any other error is a difference, unless both sides have one.
func sameOutcome(a, b error) bool {
	return (a == nil) == (b == nil) && errors.Is(a, graveler.ErrNotFound) == errors.Is(b, graveler.ErrNotFound) && (a == errEnd) == (b == errEnd)
}

func describe(said any) string {
	if v := reflect.ValueOf(said); v.Kind() == reflect.Pointer && !v.IsNil() {
		if _, isError := said.(error); !isError {
			said = v.Elem().Interface()
		}
	}
	return fmt.Sprintf("%+v", said)
}

// alongside yields what the first scan yields, and reports the first difference from the second, which is read along, record by record.
func alongside[T any](ctx context.Context, r report, read string, c comparison[T], answers, shadows iter.Seq2[T, error], carried func(answer, shadow T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		next, stop := iter.Pull2(shadows)
		defer stop()
		differs := false
		look := func(answer step[T]) {
			if differs {
				return
			}
			record, err, more := next()
			if !more {
				err = errEnd
			}
			differs = compare(ctx, r, read, c, answer, step[T]{record, err}, answer.err == nil && err == nil && carried(answer.record, record))
		}
		for answer, err := range answers {
			look(step[T]{answer, err})
			if !yield(answer, err) {
				return
			}
		}
		look(step[T]{err: errEnd})
	}
}
