// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestAddressesAreReadUpToTheFirstColon(t *testing.T) {
	for arg, want := range map[string]address{
		"lake/main:data/x.csv":      {"lake", "main", graveler.Key("data/x.csv")},
		"lake/a/b~2:k:with:colons":  {"lake", "a/b~2", graveler.Key("k:with:colons")},
		"lake/main@:/leading/slash": {"lake", "main@", graveler.Key("/leading/slash")},
		"lake/main:\xff":            {"lake", "main", graveler.Key("\xff")},
	} {
		got, err := parseEntry(arg, "")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := parseKeys("lake/main:", "", "")
	require.NoError(t, err)
	require.Empty(t, got.key)
}

func TestAddressesOfAnotherFormAreRefused(t *testing.T) {
	for _, arg := range []string{"", "lake", "lake/", "/main", "lake:", "lake/:x", ":", "/:", "lake:a/b"} {
		_, err := parseEntry(arg, "REPO/REF:KEY")
		require.Equal(t, exitUsage, exitCode(err), arg)
		require.ErrorContains(t, err, "expected REPO/REF:KEY", arg)
	}
	for _, arg := range []string{"", "lake/main", "lake:"} {
		_, err := parseRepo(arg)
		require.ErrorContains(t, err, "expected REPO", arg)
	}
}

func FuzzAddress(f *testing.F) {
	for _, arg := range []string{"lake/main:a", "lake/a/b~2:k:x", "", ":", "/", "lake/:", "LAKE/x:y", "lake/main:\x00"} {
		f.Add(arg)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		a, err := parseEntry(arg, "REPO/REF:KEY")
		if err != nil {
			usage := usageError{}
			if !errors.As(err, &usage) && !errors.Is(err, graveler.ErrInvalidName) && !errors.Is(err, graveler.ErrTooLarge) {
				t.Fatalf("%q: %v", arg, err)
			}
			return
		}
		require.Equal(t, arg, string(a.repo)+"/"+a.ref+":"+string(a.key))
		require.NotContains(t, string(a.repo), "/")
		require.False(t, strings.Contains(a.ref, ":"))
		require.NotEmpty(t, a.ref)
	})
}
