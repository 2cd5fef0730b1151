// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/catalog/catalogpb"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/graveler/staging/stagingpb"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/migrate"
)

func (a *app) kv() *cobra.Command {
	g := group("kv", "Look at the raw records of the key/value store", a.kvScan(), a.kvGet())
	g.Long = "Look at the raw records of the key/value store, decoded. Partitions are: graveler (the repositories), one per repository ('moraine repo show' names it), one per staging token " +
		"('moraine branch show' names it), cleanup-tokens and kv-internal-metadata. Nothing is ever changed. Values are shown as they are stored, also in JSON: times are nanoseconds since 1970, " +
		"and bytes are in base64."
	return g
}

func (a *app) kvScan() *cobra.Command {
	var prefix string
	var limit uint
	cmd := &cobra.Command{
		Use: "scan PARTITION", Short: "List the records of a partition, by key",
		Example: "moraine kv scan graveler",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.useKV(cmd.Context(), func(s kv.Store) error {
				it, err := s.Scan(cmd.Context(), []byte(args[0]), kv.ScanOptions{Prefix: []byte(prefix)})
				if err != nil {
					return err
				}
				found := false
				err = table(a.printer, limited(rawRecords(args[0], it), int(limit)), []string{"KEY", "TYPE", "VALUE"},
					func(r rawRecord) any { found = true; return r },
					func(r rawRecord) []string { found = true; return []string{escape(r.key), orDash(r.Type), r.text()} })
				if err == nil && !found {
					a.noteEmpty(args[0], prefix)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only keys that start with this")
	cmd.Flags().UintVar(&limit, "limit", 0, "end after so many records (0: no limit)")
	return cmd
}

func (a *app) noteEmpty(partition, prefix string) {
	state := "is empty or does not exist"
	if prefix != "" {
		state = "has nothing that starts with " + escape(prefix) + ", or does not exist"
	}
	hint := ""
	if partition != "graveler" {
		hint = " ('moraine kv scan graveler' lists the repositories; a repository's partition is NAME-UID)"
	}
	a.note("partition %s %s%s", escape(partition), state, hint)
}

func (a *app) kvGet() *cobra.Command {
	return &cobra.Command{
		Use: "get PARTITION KEY", Short: "Show one record",
		Example: "moraine kv get graveler repos/lake",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.useKV(cmd.Context(), func(s kv.Store) error {
				item, err := s.Get(cmd.Context(), []byte(args[0]), []byte(args[1]))
				if err != nil {
					return err
				}
				r, err := decodeRaw(args[0], kv.Entry{Key: []byte(args[1]), Value: item.Value})
				if err != nil {
					return err
				}
				return a.printer.record(r, "Key", escape(r.key), "Type", orDash(r.Type), "Value", r.text())
			})
		},
	}
}

// rawRecord is a record of the key/value store. Type is "" where the value is none of our messages, and is shown as it is.
type rawRecord struct {
	key []byte
	keyView
	Type  string          `json:"type,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
	Raw   []byte          `json:"value_base64,omitempty"`
	// Object is what a staged entry holds, where it is an object.
	Object json.RawMessage `json:"object,omitempty"`
}

func (r rawRecord) text() string {
	switch {
	case r.Type == "":
		return escape(r.Raw)
	case r.Object != nil:
		return string(r.Value) + " " + string(r.Object)
	default:
		return string(r.Value)
	}
}

func rawRecords(partition string, it kv.Iterator) iter.Seq2[rawRecord, error] {
	return func(yield func(rawRecord, error) bool) {
		for it.Next() {
			r, err := decodeRaw(partition, kv.Entry{Key: it.Key(), Value: it.Value()})
			if !yield(r, err) || err != nil {
				// The caller has had enough, or has an error already.
				_ = it.Close()
				return
			}
		}
		if err := it.Close(); err != nil {
			yield(rawRecord{}, err)
		}
	}
}

func decodeRaw(partition string, e kv.Entry) (rawRecord, error) {
	r := rawRecord{key: e.Key, keyView: viewKey(e.Key), Raw: e.Value}
	m, ok := ref.Decode(partition, e.Key, e.Value)
	if !ok {
		m, ok = migrate.Decode(partition, e.Key, e.Value)
	}
	if !ok {
		m, ok = cursor.Decode(partition, e.Key, e.Value)
	}
	if !ok {
		m, ok = staging.Decode(partition, e.Value)
	}
	if !ok {
		return r, nil
	}
	var err error
	if staged, ok := m.(*stagingpb.StagedEntryData); ok && len(staged.Identity) > 0 {
		object := &catalogpb.ObjectData{}
		if proto.Unmarshal(staged.Data, object) == nil {
			if r.Object, err = messageJSON(object); err != nil {
				return r, err
			}
		}
	}
	r.Type, r.Raw = string(m.ProtoReflect().Descriptor().Name()), nil
	r.Value, err = messageJSON(m)
	return r, err
}

// messageJSON is the JSON of a message. Left to itself, protojson adds spaces at random.
func messageJSON(m proto.Message) (json.RawMessage, error) {
	spaced, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, spaced); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
