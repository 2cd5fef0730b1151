// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// commitFlags are the flags of every command that makes a commit.
type commitFlags struct {
	params graveler.CommitParams
	meta   []string
}

func (f *commitFlags) define(flags *pflag.FlagSet, message string) {
	flags.StringVarP(&f.params.Message, "message", "m", "", message)
	flags.StringArrayVar(&f.meta, "meta", nil, "metadata as KEY=VALUE; may be repeated")
	flags.BoolVar(&f.params.AllowEmpty, "allow-empty", false, "commit even where nothing changed")
	flags.StringVar(&f.params.Committer, "committer", "", "who commits (default: $USER)")
}

func (f *commitFlags) read() (p graveler.CommitParams, err error) {
	p = f.params
	if p.Metadata, err = parsePairs("meta", f.meta); err != nil {
		return p, err
	}
	if p.Committer == "" {
		p.Committer = os.Getenv("USER")
	}
	return p, nil
}

const strategies = "none, source-wins or dest-wins"

// parseStrategy reads what --strategy takes.
func parseStrategy(flag, text string) (graveler.Strategy, error) {
	switch text {
	case "none":
		return graveler.StrategyNone, nil
	case "source-wins":
		return graveler.SourceWins, nil
	case "dest-wins":
		return graveler.DestWins, nil
	default:
		return 0, usageError{fmt.Sprintf("--%s %q: expected %s", flag, text, strategies)}
	}
}

// parseStrategyFor reads the values of --strategy-for. A prefix may contain what separates it from its strategy.
func parseStrategyFor(values []string) (list []graveler.PrefixStrategy, err error) {
	seen := map[string]bool{}
	for _, v := range values {
		at := strings.LastIndexByte(v, '=')
		if at < 0 {
			return nil, usageError{fmt.Sprintf("--strategy-for %q: expected PREFIX=STRATEGY", v)}
		}
		prefix := v[:at]
		if seen[prefix] {
			return nil, usageError{fmt.Sprintf("--strategy-for: the prefix %q is given twice", prefix)}
		}
		seen[prefix] = true
		s, err := parseStrategy("strategy-for", v[at+1:])
		if err != nil {
			return nil, err
		}
		list = append(list, graveler.PrefixStrategy{Prefix: graveler.Key(prefix), Strategy: s}, graveler.PrefixStrategy{Prefix: catalog.VersionsBelow(prefix), Strategy: s})
	}
	return list, nil
}

// unmoved adds to the error of a command that was to give a branch another head what to do about it. none is for where there was nothing to do.
func unmoved(err error, conflict, none string) error {
	switch {
	case errors.Is(err, graveler.ErrConflict):
		return hinted{err, conflict}
	case errors.Is(err, graveler.ErrDirtyBranch):
		return hinted{err, "commit them first; --allow-dirty keeps them on top"}
	case errors.Is(err, graveler.ErrNoChanges):
		return hinted{err, none}
	default:
		return err
	}
}

// withoutRepository explains a ref that was not found because it was given with its repository where the command has named that already.
func withoutRepository(err error, at address, refs ...string) error {
	for _, ref := range refs {
		if rest, ok := strings.CutPrefix(ref, string(at.repo)+"/"); ok && errors.Is(err, graveler.ErrRefNotFound) {
			return hinted{err, fmt.Sprintf("without the repository: %s", rest)}
		}
	}
	return err
}

// printCommit prints a commit that was made: for people its ID alone.
func (a *app) printCommit(c graveler.Commit) error {
	if a.printer.json {
		return a.printer.object(viewCommit(c))
	}
	return a.printer.line(string(c.ID))
}
