// SPDX-License-Identifier: Apache-2.0

package pgpool

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConnectErrorSaysEachThingOnce(t *testing.T) {
	lookup, refused := errors.New("lookup a: no such host"), errors.New("b: refused")
	err := connectError{errors.Join(fmt.Errorf("resolve: %w", errors.Join(lookup, lookup)), refused, refused)}
	require.EqualError(t, err, "connect: resolve: lookup a: no such host; b: refused")
	require.ErrorIs(t, err, refused)
}
