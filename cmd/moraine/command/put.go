// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/cmd/moraine/internal/fileimport"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// putFlags are the flags of put as they were given.
type putFlags struct {
	objectFlags
	file, checksum, ifMatch string
	size                    int64
	ifAbsent                bool
}

func (a *app) put() *cobra.Command {
	var f putFlags
	cmd := &cobra.Command{
		Use: "put REPO/BRANCH:KEY", Short: "Write an object",
		Long: "Write the record of an object to a branch, as an uncommitted change. --file takes address, size, checksum (SHA-256) and modification time from a file; " +
			"the other flags are put over it. Without a file the modification time is now. No bytes are copied anywhere.\n\n" +
			"Where the repository keeps versions (see 'moraine versioning'), the object that was there before stays as a noncurrent version. --lock and --legal-hold need object lock (see 'moraine object-lock').\n\n" +
			"--if-match takes what 'moraine get' shows as identity or as checksum (the ETag). The identity is of everything that is known of the object, its tags included.",
		Example: "moraine put lake/main:data/x.csv --file x.csv\nmoraine put lake/main:data/x.csv --address s3://bucket/x --size 12 --meta origin=crm --tag kind=raw --if-absent\n" +
			"moraine put lake/main:data/x.csv --file x.csv --lock GOVERNANCE:30d",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseEntry(args[0], "REPO/BRANCH:KEY")
			if err == nil {
				err = graveler.ValidateBranchID(at.branch())
			}
			// An empty value, such as a variable that is not set, would make the write unconditional, or one of nothing.
			switch changed := cmd.Flags().Changed; {
			case err != nil:
			case changed("if-match") && f.ifMatch == "":
				err = usageError{"--if-match: expected an identity or a checksum, as get shows it"}
			case changed("file") && f.file == "":
				err = usageError{"--file: expected the name of a file"}
			}
			if err != nil {
				return err
			}
			o, err := f.object(cmd)
			if err != nil {
				return fmt.Errorf("put %s/%s:%s: %w", at.repo, at.ref, escape(at.key), err)
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error { return a.runPut(cmd.Context(), s, at, o, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "file", "", "describe this file")
	flags.Int64Var(&f.size, "size", 0, "how many bytes there are")
	flags.StringVar(&f.checksum, "checksum", "", "checksum of the bytes, in any form")
	f.define(flags)
	flags.BoolVar(&f.ifAbsent, "if-absent", false, "only where there is no object yet")
	flags.StringVar(&f.ifMatch, "if-match", "", "only where the object has this identity or checksum, as get shows it")
	cmd.MarkFlagsMutuallyExclusive("if-absent", "if-match")
	return cmd
}

// object returns the object that the flags describe.
func (f *putFlags) object(cmd *cobra.Command) (o catalog.Object, err error) {
	if f.file != "" {
		if o, err = fileimport.Describe(cmd.Context(), f.file); err != nil {
			return o, err
		}
	}
	if o.Metadata, o.Tags, err = f.pairs(); err != nil {
		return o, err
	}
	if o.Lock, err = f.locked(cmd); err != nil {
		return o, err
	}
	o.ContentType, o.StorageClass = f.contentType, f.storageClass
	if cmd.Flags().Changed("address") {
		o.PhysicalAddress = f.address
	}
	if cmd.Flags().Changed("size") {
		o.Size = f.size
	}
	if cmd.Flags().Changed("checksum") {
		o.Checksum = f.checksum
	}
	_, err = catalog.Encode(o) // what cannot be kept is found before the store is opened
	return o, err
}

func (a *app) runPut(ctx context.Context, s *moraine.Store, at address, o catalog.Object, f putFlags) error {
	store := catalog.Store(s)
	if f.ifMatch != "" {
		store = matching{s, at.key, f.ifMatch}
	}
	c, err := objectsOf(store)
	if err != nil {
		return err
	}
	o, err = c.Put(ctx, at.bucket(), string(at.key), o, onlyNew(f.ifAbsent))
	return a.printPut(at, o, err)
}

func onlyNew(ifAbsent bool) catalog.Conditions {
	if ifAbsent {
		return catalog.Conditions{IfNoneMatch: "*"}
	}
	return catalog.Conditions{}
}

// printPut prints an object that was written, in JSON.
func (a *app) printPut(at address, o catalog.Object, err error) error {
	var v graveler.Value
	if err == nil {
		v, err = catalog.Encode(o)
	}
	return a.done(err, func() any {
		return struct {
			branchView
			keyView
			valueView
		}{viewPlace(at), viewKey(at.key), viewValue(v)}
	})
}

// matching is a store whose transactions take place only where an object is as somebody has seen it. (The conditions of S3 know
// nothing of identities.)
type matching struct {
	*moraine.Store
	key  graveler.Key
	seen string // its identity or checksum
}

func (m matching) Transact(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, change func(context.Context, *graveler.Transaction) error) error {
	return m.Store.Transact(ctx, repo, branch, func(ctx context.Context, tx *graveler.Transaction) error {
		found, err := tx.Get(ctx, m.key)
		if err == nil {
			err = m.check(found[0])
		}
		if err != nil {
			return err
		}
		return change(ctx, tx)
	})
}

func (m matching) check(v *graveler.Value) error {
	if v == nil {
		return fmt.Errorf("%w: the object does not exist", catalog.PreconditionFailed)
	}
	if strings.EqualFold(hex.EncodeToString(v.Identity), m.seen) {
		return nil
	}
	o, err := catalog.Decode(*v)
	if err == nil && o.Checksum != "" && strings.Trim(o.Checksum, `"`) == strings.Trim(m.seen, `"`) {
		return nil
	}
	return fmt.Errorf("%w: the object has another identity, and another checksum", catalog.PreconditionFailed)
}
