// SPDX-License-Identifier: Apache-2.0

package lakefs

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// Value returns what an entry of lakeFS, committed or staged, is in a repository whose storage namespace is given: the value of a
// catalog.Object with the identity that lakeFS gave the entry, whose memory it keeps. What cannot be kept is
// graveler.ErrInvalidValue or ErrTooLarge, and names the key.
func Value(r Record, namespace string) (graveler.Value, error) {
	v, err := value(r, namespace)
	if err != nil {
		return graveler.Value{}, fmt.Errorf("entry %q: %w", r.Key, err)
	}
	return v, nil
}

func value(r Record, namespace string) (graveler.Value, error) {
	m := &lakefspb.EntryData{}
	err := proto.Unmarshal(r.Data, m)
	if err == nil {
		err = errors.Join(knownHere(m.ProtoReflect()), knownHere(m.ModifiedAt.ProtoReflect())) // as known finds, in less time: there are many entries
	}
	if err != nil {
		return graveler.Value{}, fmt.Errorf("%w: %w", graveler.ErrInvalidValue, err)
	}
	address, err := physicalAddress(m, namespace)
	if err != nil {
		return graveler.Value{}, err
	}
	// Two entries are equal where lakeFS says so: with identities of our own, over other fields, a branch would have uncommitted
	// changes and commits would have differences that they had not.
	return catalog.EncodeAs(catalog.Object{
		PhysicalAddress: address,
		Size:            m.Size,
		Checksum:        m.Etag,
		ModifiedAt:      timeOf(m.ModifiedAt),
		ContentType:     m.ContentType,
		Metadata:        m.Metadata,
	}, r.Identity)
}

// isFull reports whether an address of no type is a full one: a URL of an object store that lakeFS knows.
//
// Source: lakeFS, pkg/block/namespace.go.
func isFull(address string) bool {
	u, err := url.ParseRequestURI(address)
	return err == nil && slices.Contains([]string{"s3", "gs", "http", "https", "local", "mem", "memory"}, u.Scheme)
}

// physicalAddress makes the address of an entry a full one.
func physicalAddress(m *lakefspb.EntryData, namespace string) (string, error) {
	full := false
	switch m.AddressType {
	case lakefspb.AddressType_ADDRESS_BY_PREFIX:
		full = isFull(m.Address)
	case lakefspb.AddressType_ADDRESS_RELATIVE:
	case lakefspb.AddressType_ADDRESS_FULL:
		full = true
	default:
		return "", fmt.Errorf("%w: this program does not know address type %d", graveler.ErrInvalidValue, m.AddressType)
	}
	if full || m.Address == "" { // of nothing, the address would be that of the whole repository
		return m.Address, nil
	}
	return strings.TrimRight(namespace, "/") + "/" + m.Address, nil
}
