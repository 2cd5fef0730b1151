// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// address is what an argument names: a repository, a ref in it, or keys in the ref. A repository's name has no slash, and a ref
// ends at the first colon.
type address struct {
	repo graveler.RepositoryID
	ref  string // a ref expression
	key  graveler.Key
}

func (a address) branch() graveler.BranchID { return graveler.BranchID(a.ref) }

// parseRepo reads REPO.
func parseRepo(arg string) (graveler.RepositoryID, error) {
	if arg == "" || strings.ContainsAny(arg, "/:") {
		return "", malformed(arg, "REPO", "lake")
	}
	return graveler.RepositoryID(arg), graveler.ValidateRepositoryID(graveler.RepositoryID(arg))
}

// parseRef reads REPO/REF. An error shows form and example, since not everything that has this form is a ref.
func parseRef(arg, form, example string) (address, error) {
	repo, ref, ok := strings.Cut(arg, "/")
	if !ok || repo == "" || ref == "" || strings.Contains(arg, ":") {
		return address{}, malformed(arg, form, example)
	}
	a := address{repo: graveler.RepositoryID(repo), ref: ref}
	return a, graveler.ValidateRepositoryID(a.repo)
}

func parseBranch(arg string) (address, error) {
	a, err := parseRef(arg, "REPO/BRANCH", "lake/main")
	if err == nil {
		err = graveler.ValidateBranchID(a.branch())
	}
	return a, err
}

// parseKeys reads REPO/REF:KEY, where the key, or prefix of keys, may be empty.
func parseKeys(arg, form, example string) (address, error) {
	place, key, ok := strings.Cut(arg, ":")
	if !ok {
		return address{}, malformed(arg, form, example)
	}
	a, err := parseRef(place, form, example)
	if err != nil {
		return address{}, err
	}
	a.key = graveler.Key(key)
	return a, nil
}

// parseEntry reads REPO/REF:KEY of one entry.
func parseEntry(arg, form string) (address, error) {
	a, err := parseKeys(arg, form, "lake/main:data/x.csv")
	if err == nil {
		err = graveler.ValidateKey(a.key)
	}
	return a, err
}

func malformed(arg, form, example string) error {
	return usageError{fmt.Sprintf("%q: expected %s, such as %s", arg, form, example)}
}

// sameRepository makes sure that two refs are of one repository.
func sameRepository(a, b address) error {
	if a.repo != b.repo {
		return usageError{fmt.Sprintf("%s/%s and %s/%s are not in the same repository", a.repo, a.ref, b.repo, b.ref)}
	}
	return nil
}
