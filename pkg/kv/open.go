// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OpenOptions says how to open a store.
type OpenOptions struct {
	// ReadOnly opens what exists and changes nothing, not even to create the store. Engines whose
	// store is a file let several readers share it.
	ReadOnly bool
}

// Opener opens a store of one engine. It gets the whole URL, and its errors name the URL, if at all,
// only as [Redact] shows it.
type Opener func(ctx context.Context, url string, o OpenOptions) (Store, error)

// Engines maps the scheme of a URL to the engine that it stands for. A program links the engines
// that it names here and no others.
type Engines map[string]Opener

// Open opens the store that a URL such as bolt:///var/lib/moraine/meta.db names, and makes sure that
// this program understands what is in it: [ErrInvalidURL], [ErrUnknownEngine], [ErrSchemaNewer], [ErrNotAStore] and
// [ErrLocked] are the expected reasons to fail.
func Open(ctx context.Context, url string, engines Engines, o OpenOptions) (Store, error) {
	scheme, _, ok := splitScheme(url)
	if !ok {
		return nil, fmt.Errorf("open store: %w: it has no scheme, such as bolt: in bolt:PATH (known: %s)",
			ErrInvalidURL, engines.known())
	}
	open, ok := engines[scheme]
	if !ok {
		return nil, fmt.Errorf("open store: %w %q (known: %s)", ErrUnknownEngine, scheme, engines.known())
	}
	s, err := open(ctx, url, o)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", Redact(url), err)
	}
	if err := checkSchema(ctx, s, o.ReadOnly); err != nil {
		err = fmt.Errorf("open store %s: %w", Redact(url), err)
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (e Engines) known() string {
	if len(e) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(e)), ", ")
}

// splitScheme cuts a URL at the colon that ends its scheme.
func splitScheme(url string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(url, ":")
	if !ok || scheme == "" {
		return "", "", false
	}
	for i, c := range []byte(strings.ToLower(scheme)) {
		letter := 'a' <= c && c <= 'z'
		other := '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
		if !letter && (i == 0 || !other) {
			return "", "", false
		}
	}
	return strings.ToLower(scheme), rest, true
}
