// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
)

// objectsOf returns the object layer over a store.
func objectsOf(s catalog.Store) (*catalog.Catalog, error) {
	return catalog.New(catalog.Config{Store: s, Checkpoint: catalog.CheckpointPolicy{Committer: os.Getenv("USER")}})
}

// useObjects calls fn with the object layer of the open store.
func (a *app) useObjects(ctx context.Context, how access, at address, fn func(c *catalog.Catalog) error) error {
	return a.useBranch(ctx, how, at, func(s *moraine.Store) error {
		c, err := objectsOf(s)
		if err != nil {
			return err
		}
		return fn(c)
	})
}

// bucket is where the objects are that an address names.
func (a address) bucket() catalog.Bucket { return catalog.Bucket{Repository: a.repo, Ref: a.ref} }

// versionID is the value of --version. An empty one, such as a variable that is not set, is refused: it would mean the current version.
type versionID string

func (v *versionID) Set(text string) error {
	if text == "" {
		return errors.New("expected the ID of a version")
	}
	*v = versionID(text)
	return nil
}

func (v *versionID) String() string { return string(*v) }

func (v *versionID) Type() string { return "string" }

func defineVersion(flags *pflag.FlagSet, version *string, usage string) {
	flags.Var((*versionID)(version), "version", usage)
}

// objectFlags are the flags that say what an object is like, as they were given.
type objectFlags struct {
	address, contentType, storageClass, lock string
	meta, tags                               []string
	legalHold                                bool
}

func (f *objectFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "address", "", "where the bytes are")
	flags.StringVar(&f.contentType, "content-type", "", "what the bytes are, such as text/csv")
	flags.StringArrayVar(&f.meta, "meta", nil, "metadata as KEY=VALUE; may be repeated")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag as KEY=VALUE; may be repeated")
	flags.StringVar(&f.storageClass, "storage-class", "", "how the bytes are stored, in any form")
	flags.StringVar(&f.lock, "lock", "", "retention as "+lockForm)
	flags.BoolVar(&f.legalHold, "legal-hold", false, "keep the version until the hold is taken back")
}

// pairs returns metadata and tags.
func (f *objectFlags) pairs() (meta, tags map[string]string, err error) {
	if meta, err = parsePairs("meta", f.meta); err != nil {
		return nil, nil, err
	}
	tags, err = parsePairs("tag", f.tags)
	return meta, tags, err
}

// locked returns how the object is to be locked.
func (f *objectFlags) locked(cmd *cobra.Command) (catalog.Lock, error) {
	lock := catalog.Lock{LegalHold: f.legalHold}
	if !cmd.Flags().Changed("lock") {
		return lock, nil
	}
	r, err := parseRetain("--lock", f.lock, time.Now())
	lock.Mode, lock.RetainUntil = r.Mode, r.Until
	return lock, err
}

// lockForm is what parseRetain takes.
const lockForm = "MODE:UNTIL: GOVERNANCE or COMPLIANCE, and a time, or for how long, such as 30d or 7y"

// span is a time in days or years.
var span = regexp.MustCompile(`^([0-9]{1,6})([dy])$`)

// parseSpan reads days or years.
func parseSpan(text string) (days, years int, ok bool) {
	found := span.FindStringSubmatch(text)
	if found == nil {
		return 0, 0, false
	}
	n, err := strconv.Atoi(found[1])
	if found[2] == "y" {
		return 0, n, err == nil
	}
	return n, 0, err == nil
}

// parseRetain reads MODE:UNTIL.
func parseRetain(name, text string, now time.Time) (catalog.Retention, error) {
	wrong := usageError{name + " " + strconv.Quote(text) + ": expected " + lockForm}
	mode, until, ok := strings.Cut(text, ":")
	r := catalog.Retention{Mode: parseLockMode(mode)}
	if !ok || r.Mode == catalog.LockNone {
		return catalog.Retention{}, wrong
	}
	if days, years, ok := parseSpan(until); ok {
		r.Until = now.UTC().AddDate(years, 0, days)
		return r, nil
	}
	t, err := parseTime(until)
	if err != nil {
		return catalog.Retention{}, wrong
	}
	r.Until = t
	return r, nil
}

// parseLockMode returns LockNone for what is no mode.
func parseLockMode(text string) catalog.LockMode {
	for _, mode := range []catalog.LockMode{catalog.LockGovernance, catalog.LockCompliance} {
		if strings.EqualFold(text, mode.String()) {
			return mode
		}
	}
	return catalog.LockNone
}
