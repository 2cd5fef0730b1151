// SPDX-License-Identifier: Apache-2.0

package graveler

// CheckAtATime has few commits checked at a time, so that small histories take several turns.
func (l *Loading) CheckAtATime(commits int) { l.window = commits }
