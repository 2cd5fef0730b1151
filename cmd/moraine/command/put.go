// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/cmd/moraine/internal/fileimport"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// putFlags are the flags of put as they were given.
type putFlags struct {
	file, address, checksum, ifMatch string
	size                             int64
	meta                             []string
	ifAbsent                         bool
}

func (a *app) put() *cobra.Command {
	var f putFlags
	cmd := &cobra.Command{
		Use: "put REPO/BRANCH:KEY", Short: "Write an entry",
		Long: "Write the record of an object to a branch, as an uncommitted change. --file takes address, size, checksum (SHA-256) and modification time from a file; " +
			"the other flags are put over it. Without a file the modification time is now. No bytes are copied anywhere.",
		Example: "moraine put lake/main:data/x.csv --file x.csv\nmoraine put lake/main:data/x.csv --address s3://bucket/x --size 12 --meta origin=crm --if-absent",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseEntry(args[0], "REPO/BRANCH:KEY")
			if err == nil {
				err = graveler.ValidateBranchID(at.branch())
			}
			if err != nil {
				return err
			}
			write, err := f.writer(at)
			if err != nil {
				return err
			}
			value, err := f.value(cmd)
			if err != nil {
				return fmt.Errorf("put %s/%s:%s: %w", at.repo, at.ref, escape(at.key), err)
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				return a.done(write(cmd.Context(), s, value), func() any {
					return struct {
						branchView
						keyView
						valueView
					}{viewPlace(at), viewKey(at.key), viewValue(value)}
				})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "file", "", "describe this file")
	flags.StringVar(&f.address, "address", "", "where the bytes are")
	flags.Int64Var(&f.size, "size", 0, "how many bytes there are")
	flags.StringVar(&f.checksum, "checksum", "", "checksum of the bytes, in any form")
	flags.StringArrayVar(&f.meta, "meta", nil, "metadata as KEY=VALUE; may be repeated")
	flags.BoolVar(&f.ifAbsent, "if-absent", false, "only where the branch does not have the key")
	flags.StringVar(&f.ifMatch, "if-match", "", "only where the entry has this identity, as get shows it")
	return cmd
}

// writer returns the call that writes, with the condition that was asked for.
func (f *putFlags) writer(at address) (func(context.Context, *moraine.Store, graveler.Value) error, error) {
	switch {
	case f.ifAbsent && f.ifMatch != "":
		return nil, usageError{"--if-absent and --if-match exclude each other"}
	case f.ifAbsent:
		return func(ctx context.Context, s *moraine.Store, v graveler.Value) error {
			return s.SetIfAbsent(ctx, at.repo, at.branch(), at.key, v)
		}, nil
	case f.ifMatch != "":
		identity, err := hex.DecodeString(f.ifMatch)
		if err != nil {
			return nil, usageError{fmt.Sprintf("--if-match %q: expected an identity, in hexadecimal, as get shows it", f.ifMatch)}
		}
		return func(ctx context.Context, s *moraine.Store, v graveler.Value) error {
			return s.SetIf(ctx, at.repo, at.branch(), at.key, v, identity)
		}, nil
	default:
		return func(ctx context.Context, s *moraine.Store, v graveler.Value) error {
			return s.Set(ctx, at.repo, at.branch(), at.key, v)
		}, nil
	}
}

// value returns the record that the flags describe.
func (f *putFlags) value(cmd *cobra.Command) (graveler.Value, error) {
	o := catalog.Object{ModifiedAt: time.Now()}
	if f.file != "" {
		var err error
		if o, err = fileimport.Describe(cmd.Context(), f.file); err != nil {
			return graveler.Value{}, err
		}
	}
	meta, err := parsePairs("meta", f.meta)
	if err != nil {
		return graveler.Value{}, err
	}
	o.Metadata = meta
	if cmd.Flags().Changed("address") {
		o.PhysicalAddress = f.address
	}
	if cmd.Flags().Changed("size") {
		o.Size = f.size
	}
	if cmd.Flags().Changed("checksum") {
		o.Checksum = f.checksum
	}
	return catalog.Encode(o)
}
