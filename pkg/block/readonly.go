// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"fmt"
)

// ReadOnly gives a view of a storage in which every changing method, Sync included, is
// [ErrReadOnly]. Closing it closes the storage.
func ReadOnly(s Storage) Storage { return readOnly{s} }

type readOnly struct{ Storage }

func (readOnly) Put(_ context.Context, name string, _ []byte) error { return refuse("put", name) }
func (readOnly) Delete(_ context.Context, name string) error        { return refuse("delete", name) }
func (readOnly) Refresh(_ context.Context, name string) error       { return refuse("refresh", name) }

func (readOnly) Sync(_ context.Context, names []string) error {
	return fmt.Errorf("sync %d files: %w", len(names), ErrReadOnly)
}

func refuse(op, name string) error { return fmt.Errorf("%s %s: %w", op, name, ErrReadOnly) }
