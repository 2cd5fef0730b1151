// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/migrate"
)

func (a *app) copyCommand() *cobra.Command {
	var from, to, fromBlocks, toBlocks string
	cmd := &cobra.Command{
		Use: "copy", Short: "Copy all repositories from one store to another, of any engine",
		Long: "Copy all repositories from one store to another, of any engine, each as of one dump, and prove every copy by a dump of it. The source may be in use. The range files are copied too, into folders of the copies' own; the block storage of both stores is that of --blocks, " +
			"unless --from-blocks or --to-blocks names another. When it is interrupted, run it again: what is complete is not copied again. A repository of the target that it did not copy is refused. It takes no account of --store.",
		Example: "moraine copy --from bolt:.moraine/meta.db --to postgres://moraine@localhost/moraine",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			fromBlocks, toBlocks = orElse(fromBlocks, a.blocks), orElse(toBlocks, a.blocks)
			files, err := lastingURL(fromBlocks)
			if err != nil {
				return err
			}
			if from == to {
				return usageError{"--from and --to name the same store"}
			}
			source := *a
			source.store, source.blocks = from, fromBlocks
			err = source.use(ctx, reading, func(source *moraine.Store) error {
				return a.useOther(ctx, to, toBlocks, creating, func(target *moraine.Store, store kv.Store) error {
					c := migrate.Copy{
						From: source.Graveler, To: target.Graveler, KV: store, Program: "moraine " + programVersion(),
						Files: func(namespace string) string { return filesOf(files, fromBlocks == toBlocks, namespace) },
						Progress: func(id graveler.RepositoryID, copied bool, done int) {
							what := "was there"
							if copied {
								what = "is copied"
							}
							a.note("repository %s %s (%d)", id, what, done)
						},
					}
					r, err := c.Run(ctx)
					for _, id := range r.LeftOut {
						a.note("repository %s is left out: it is being created or deleted", id)
					}
					if err != nil {
						return err
					}
					view := struct {
						Copied       int `json:"copied"`
						AlreadyThere int `json:"already_there"`
						LeftOut      int `json:"left_out"`
					}{r.Copied, r.AlreadyThere, len(r.LeftOut)}
					return a.printer.record(view, "Repositories copied", count(r.Copied), "Repositories that were there", count(r.AlreadyThere))
				})
			})
			if errors.Is(err, errNoStore) {
				return hinted{err, "--from names the store to copy, which must exist"}
			}
			return goOn(err)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "URL of the store to copy")
	flags.StringVar(&to, "to", "", "URL of the store to copy to, which is made where there is none")
	flags.StringVar(&fromBlocks, "from-blocks", "", "URL of the block storage of the source, if it is not that of --blocks")
	flags.StringVar(&toBlocks, "to-blocks", "", "URL of the block storage of the target, if it is not that of --blocks")
	for _, name := range []string{"from", "to"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is above
		}
	}
	return cmd
}

// goOn says of what was interrupted that it can be taken up.
func goOn(err error) error {
	if errors.Is(err, context.Canceled) {
		return hinted{err, "interrupted; run it again to go on"}
	}
	return err
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// filesOf says where the files of a namespace are, to a store which has another block storage, unless that is the same.
func filesOf(blocks string, same bool, namespace string) string {
	if same || strings.Contains(namespace, ":") {
		return namespace
	}
	place, query, hasQuery := strings.Cut(blocks, "?")
	place = strings.TrimSuffix(place, "/") + "/" + namespace
	if hasQuery {
		place += "?" + query
	}
	return place
}

// useOther is use for a store that the command names, with its engine.
func (a *app) useOther(ctx context.Context, store, blocks string, how access, fn func(*moraine.Store, kv.Store) error) error {
	other := *a
	other.store, other.blocks = store, blocks
	if other.backend() != nil {
		return fmt.Errorf("store %s: %w", kv.Redact(store), fsck.ErrNoKV)
	}
	if how != creating {
		if err := other.checkStore(ctx); err != nil {
			return err
		}
	}
	s, err := kv.Open(ctx, store, all.Engines(), kv.OpenOptions{ReadOnly: how == reading})
	if err != nil {
		return other.unopened(err)
	}
	o := moraine.Options{KV: s, Blocks: blocks, BlockEngines: other.blockEngines(how), ReadOnly: how == reading}
	o.Hooks.Guard = catalog.KeepLocked(a.lockClock)
	a.logTo(&o)
	opened, err := moraine.Open(ctx, o)
	if err != nil {
		if errors.Is(err, block.ErrUnknownEngine) {
			err = fmt.Errorf("block storage %s: %w", kv.Redact(blocks), err)
		}
		return errors.Join(other.unopened(err), s.Close())
	}
	return errors.Join(fn(opened, s), opened.Close(), s.Close())
}
