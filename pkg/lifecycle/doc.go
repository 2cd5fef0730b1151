// SPDX-License-Identifier: Apache-2.0

// Package lifecycle holds the lifecycle rules of a repository and says what they ask for. It reads and writes nothing.
//
// A [Configuration] is written and read as S3's XML ([ParseXML], [Configuration.XML]) or as JSON ([ParseJSON],
// [Configuration.JSON]), and is checked in both ([Configuration.Validate]). Its rules ask for actions ([Rule.Actions]) on objects
// ([Object]): [Action.Accepts] says whether an action is meant for an object, [Action.Applies] whether it stands where its
// siblings are looked at as well, and [Due] when it is to happen. [Calendar] is the arithmetic of days under all of that:
// [Calendar.Due] and [Calendar.Horizon] are two forms of one question.
package lifecycle
