// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// rootCommit is the empty first commit of a repository that has nothing but its row: every repository of ours has a default
// branch, which stands on a commit.
func rootCommit(repo string, created time.Time, logTime int64, emptyTree graveler.MetaRangeID) *graveler.Commit {
	c := &graveler.Commit{
		Version: graveler.CommitVersion, Message: "Repository created", Tree: emptyTree, CreatedAt: created, Generation: 1, LogTime: logTime,
		Nonce: hexOf(nameHash("first commit", repo)),
	}
	c.ID = c.ComputeID()
	return c
}
