// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OpenOptions says how to open a storage.
type OpenOptions struct {
	// ReadOnly opens what exists and changes nothing, not even to create the storage.
	ReadOnly bool
}

// Opener opens a storage of one engine. It gets the whole URL. Its errors say what could not be
// opened, without credentials that the URL may hold.
type Opener func(ctx context.Context, url string, o OpenOptions) (Storage, error)

// Engines maps the scheme of a URL to the engine that it stands for. A program links the engines
// that it names here and no others.
type Engines map[string]Opener

// Open opens the storage that a URL such as file:///var/lib/moraine/blocks names. A scheme that is
// not among the engines is [ErrUnknownEngine], which lists those that are.
func Open(ctx context.Context, url string, engines Engines, o OpenOptions) (Storage, error) {
	scheme, _, ok := strings.Cut(url, ":")
	if !ok || scheme == "" || strings.Contains(scheme, "/") {
		return nil, fmt.Errorf("open block storage: the URL has no scheme, such as file: in file:PATH: %w (known: %s)",
			ErrUnknownEngine, engines.known())
	}
	open, ok := engines[strings.ToLower(scheme)]
	if !ok {
		return nil, fmt.Errorf("open block storage: %w %q (known: %s)", ErrUnknownEngine, scheme, engines.known())
	}
	s, err := open(ctx, url, o)
	if err != nil {
		return nil, fmt.Errorf("open block storage: %w", err)
	}
	return s, nil
}

func (e Engines) known() string {
	if len(e) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(e)), ", ")
}
