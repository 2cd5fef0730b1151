// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"context"
	"fmt"
)

// ReadOnly gives a view of a store in which every write is [ErrReadOnly]. Closing it closes the store.
// It is for stores that are open for writing elsewhere in the program; an engine that is opened with
// [OpenOptions].ReadOnly refuses writes by itself.
func ReadOnly(s Store) Store { return readOnly{s} }

type readOnly struct{ Store }

func (readOnly) Set(context.Context, []byte, []byte, []byte) error { return refuse("set") }

func (readOnly) SetIf(context.Context, []byte, []byte, []byte, Predicate) error {
	return refuse("conditional set")
}

func (readOnly) Delete(context.Context, []byte, []byte) error { return refuse("delete") }

func (readOnly) DeleteIf(context.Context, []byte, []byte, Predicate) error {
	return refuse("conditional delete")
}

func (readOnly) Apply(context.Context, []byte, []Write, *Fence) error { return refuse("apply") }

func refuse(op string) error { return fmt.Errorf("%s: %w", op, ErrReadOnly) }
