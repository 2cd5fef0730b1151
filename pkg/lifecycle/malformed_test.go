// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// requireRefused holds a configuration to have been refused for one reason.
func requireRefused(t *testing.T, err error, code catalog.Code, rule, field, message string) {
	t.Helper()
	var refused *lifecycle.ConfigError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []string{string(code), rule, field}, []string{string(refused.Code), refused.Rule, refused.Field}, "%v", err)
	require.Contains(t, refused.Message, message)
	require.ErrorIs(t, err, code)
	require.ErrorContains(t, err, strings.Trim(strconv.Quote(rule), `"`))
	require.ErrorContains(t, err, field)
}

// whole wraps rules, filtered one that has a given filter and the ID "a".
func whole(rules ...string) string {
	return "<LifecycleConfiguration>" + strings.Join(rules, "") + "</LifecycleConfiguration>"
}

func filtered(filter, actions string) string {
	return whole("<Rule><ID>a</ID><Status>Enabled</Status><Filter>" + filter + "</Filter>" + actions + "</Rule>")
}

const (
	tagA    = "<Tag><Key>a</Key><Value>1</Value></Tag>"
	tagB    = "<Tag><Key>b</Key><Value>2</Value></Tag>"
	greater = "<ObjectSizeGreaterThan>10</ObjectSizeGreaterThan>"
	less    = "<ObjectSizeLessThan>10</ObjectSizeLessThan>"
	abort   = "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>"
	lone    = "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"
)

var malformedXML = []struct {
	name, xml            string
	code                 catalog.Code
	rule, field, message string
}{
	{"nothing", "", catalog.MalformedXML, "", "", "there is no element"},
	{"no XML", "{}", catalog.MalformedXML, "", "", "text outside"},
	{"cut off", rule(days)[:80], catalog.MalformedXML, "", "", "unexpected EOF"},
	{"wrong end", "<LifecycleConfiguration></Rule>", catalog.MalformedXML, "", "", "not well-formed"},
	{"not UTF-8", rule("<ID>\xff</ID>" + days), catalog.MalformedXML, "", "", "UTF-8"},
	{"another encoding", `<?xml version="1.0" encoding="ISO-8859-1"?>` + rule(days), catalog.MalformedXML, "", "", "encoding"},
	{"unknown entity", rule("<ID>&a;</ID>" + days), catalog.MalformedXML, "", "", "entity"},
	{"document type", `<!DOCTYPE a [<!ENTITY a "b">]>` + rule(days), catalog.MalformedXML, "", "", "document type"},
	{"two documents", rule(days) + rule(days), catalog.MalformedXML, "", "", "second document"},
	{"text after it", rule(days) + "a", catalog.MalformedXML, "", "", "text outside"},
	{"text between elements", rule(days + "a"), catalog.MalformedXML, "", "", "between the elements of Rule"},
	{"other document", "<Lifecycle/>", catalog.MalformedXML, "", "", "not a LifecycleConfiguration"},
	{"other case", strings.ReplaceAll(rule(days), "LifecycleConfiguration", "LifeCycleConfiguration"), catalog.MalformedXML, "", "", "not a LifecycleConfiguration"},
	{"other namespace", strings.Replace(rule(days), "<Rule", `<Rule xmlns="urn:a"`, 1), catalog.MalformedXML, "", "", `namespace "urn:a"`},
	{"unbound prefix", strings.ReplaceAll(rule(days), "Days", "a:Days"), catalog.MalformedXML, "", "", `namespace "a"`},
	{"attribute", strings.Replace(rule(days), "<Filter", `<Filter Prefix="a"`, 1), catalog.MalformedXML, "", "", "Filter has an attribute Prefix"},
	{"nested deep", strings.Repeat("<Rule>", 100_000), catalog.MalformedXML, "", "", "too deep"},
	{"unknown element", whole("<Rules/>"), catalog.MalformedXML, "", "Rules", "it does not belong here"},
	{"branches", rule(days)[:len(rule(days))-len("</LifecycleConfiguration>")] + "<Branch>a</Branch></LifecycleConfiguration>", catalog.MalformedXML, "", "Branch", "does not belong"},

	{"no rule", "<LifecycleConfiguration/>", catalog.InvalidRequest, "", "Rule", "At least one lifecycle rule must be specified"},
	{"1,001 rules", whole(strings.Repeat("<Rule><Filter/><Status>Enabled</Status>"+days+"</Rule>", 1001)), catalog.InvalidRequest, "", "Rule", "1000 rules"},
	{"text for a rule", whole("<Rule>a</Rule>"), catalog.MalformedXML, "#1", "", "not a structure"},
	{"unknown field", rule("<Expire/>"), catalog.MalformedXML, "#1", "Expire", "does not belong"},
	{"unknown field of a named rule", rule("<Expire/><ID>a</ID>"), catalog.MalformedXML, "a", "Expire", "does not belong"},
	{"second rule at fault", whole("<Rule><Filter/><Status>Enabled</Status>" + days + "</Rule><Rule/>"), catalog.MalformedXML, "#2", "", "Status is missing"},
	{"transition", filtered("", days+"<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>"), catalog.InvalidRequest, "a", "Transition", "not supported"},
	{"noncurrent transition", filtered("", "<NoncurrentVersionTransition/>"), catalog.InvalidRequest, "a", "NoncurrentVersionTransition", "not supported"},

	{"ID twice", rule("<ID>a</ID><ID>a</ID>" + days), catalog.MalformedXML, "a", "ID", "more than once"},
	{"ID of a structure", rule("<ID><a/></ID>" + days), catalog.MalformedXML, "#1", "ID", "not a text"},
	{"ID of 256 characters", rule("<ID>" + strings.Repeat("é", 256) + "</ID>" + days), catalog.InvalidArgument, "#1", "ID", "255"},

	{"no status", whole("<Rule><ID>a</ID><Filter/>" + days + "</Rule>"), catalog.MalformedXML, "a", "", "Status is missing"},
	{"status in lower case", whole("<Rule><ID>a</ID><Filter/><Status>enabled</Status>" + days + "</Rule>"), catalog.MalformedXML, "a", "Status", `"enabled"`},
	{"status with a space", whole("<Rule><ID>a</ID><Filter/><Status> Enabled</Status>" + days + "</Rule>"), catalog.MalformedXML, "a", "Status", `" Enabled"`},
	{"empty status", whole("<Rule><ID>a</ID><Filter/><Status/>" + days + "</Rule>"), catalog.MalformedXML, "a", "Status", `""`},

	{"neither filter nor prefix", whole("<Rule><ID>a</ID><Status>Enabled</Status>" + days + "</Rule>"), catalog.MalformedXML, "a", "", "Filter is missing"},
	{"filter and prefix", whole("<Rule><ID>a</ID><Status>Enabled</Status><Filter/><Prefix/>" + days + "</Rule>"), catalog.MalformedXML, "a", "Prefix", "exclude"},
	{"filters after prefixes", whole("<Rule><Status>Enabled</Status><Prefix/>"+days+"</Rule>", "<Rule><ID>b</ID><Status>Enabled</Status><Filter/>"+days+"</Rule>"),
		catalog.InvalidRequest, "b", "Filter", "Filter element can only be used in Lifecycle V2"},
	{"prefixes after filters", whole("<Rule><Status>Enabled</Status><Filter/>"+days+"</Rule>", "<Rule><ID>b</ID><Status>Enabled</Status><Prefix/>"+days+"</Rule>"),
		catalog.InvalidRequest, "b", "Prefix", "Base level prefix cannot be used in Lifecycle V2"},
	{"text for a filter", filtered("a", days), catalog.MalformedXML, "a", "Filter", "not a structure"},
	{"prefix and tag", filtered("<Prefix/>"+tagA, days), catalog.MalformedXML, "a", "Filter", "needs an And"},
	{"prefix and size", filtered("<Prefix>a</Prefix>"+greater, days), catalog.MalformedXML, "a", "Filter", "needs an And"},
	{"prefix twice", filtered("<Prefix>a</Prefix><Prefix>a</Prefix>", days), catalog.MalformedXML, "a", "Filter.Prefix", "more than once"},
	{"two tags", filtered(tagA+tagB, days), catalog.MalformedXML, "a", "Filter.Tag", "more than once"},
	{"And beside a prefix", filtered("<And>"+tagA+tagB+"</And><Prefix/>", days), catalog.MalformedXML, "a", "Filter", "stands alone"},
	{"empty And", filtered("<And/>", days), catalog.MalformedXML, "a", "Filter.And", "two predicates"},
	{"And of a prefix", filtered("<And><Prefix>a</Prefix></And>", days), catalog.MalformedXML, "a", "Filter.And", "two predicates"},
	{"And of a tag", filtered("<And>"+tagA+"</And>", days), catalog.MalformedXML, "a", "Filter.And", "two predicates"},
	{"And in And", filtered("<And><And>"+tagA+tagB+"</And>"+tagA+"</And>", days), catalog.MalformedXML, "a", "Filter.And.And", "does not belong"},
	{"prefix twice in And", filtered("<And><Prefix>a</Prefix><Prefix>b</Prefix></And>", days), catalog.MalformedXML, "a", "Filter.And.Prefix", "more than once"},
	{"Tags", filtered("<And><Tags>"+tagA+"</Tags><Prefix/></And>", days), catalog.MalformedXML, "a", "Filter.And.Tags", "does not belong"},
	{"long prefix", filtered("<Prefix>"+strings.Repeat("a", 1025)+"</Prefix>", days), catalog.InvalidRequest, "a", "Filter.Prefix", "1024"},
	{"long legacy prefix", whole("<Rule><ID>a</ID><Status>Enabled</Status><Prefix>" + strings.Repeat("é", 513) + "</Prefix>" + days + "</Rule>"), catalog.InvalidRequest, "a", "Prefix", "1024"},
	{"tag without key", filtered("<Tag><Value>1</Value></Tag>", days), catalog.MalformedXML, "a", "Filter.Tag", "Key is missing"},
	{"tag without value", filtered("<Tag><Key>a</Key></Tag>", days), catalog.MalformedXML, "a", "Filter.Tag", "Value is missing"},
	{"tag of two keys", filtered("<Tag><Key>a</Key><Key>a</Key><Value/></Tag>", days), catalog.MalformedXML, "a", "Filter.Tag.Key", "more than once"},
	{"empty tag key", filtered("<Tag><Key/><Value/></Tag>", days), catalog.InvalidRequest, "a", "Filter.Tag.Key", "between 1 and 128"},
	{"long tag key", filtered("<Tag><Key>"+strings.Repeat("é", 129)+"</Key><Value/></Tag>", days), catalog.InvalidRequest, "a", "Filter.Tag.Key", "between 1 and 128"},
	{"long tag value", filtered("<Tag><Key>a</Key><Value>"+strings.Repeat("é", 257)+"</Value></Tag>", days), catalog.InvalidRequest, "a", "Filter.Tag.Value", "between 0 and 256"},
	{"one tag key twice", filtered("<And>"+tagA+tagB+tagA+"</And>", days), catalog.InvalidRequest, "a", "Filter.And.Tag.Key", "Duplicate Tag Keys"},
	{"size that is no number", filtered("<ObjectSizeLessThan>1k</ObjectSizeLessThan>", days), catalog.MalformedXML, "a", "Filter.ObjectSizeLessThan", `"1k"`},
	{"empty size", filtered("<ObjectSizeGreaterThan/>", days), catalog.MalformedXML, "a", "Filter.ObjectSizeGreaterThan", `""`},
	{"size of 65 bits", filtered("<ObjectSizeLessThan>9223372036854775808</ObjectSizeLessThan>", days), catalog.MalformedXML, "a", "Filter.ObjectSizeLessThan", "whole number"},
	{"less than 0", filtered("<ObjectSizeLessThan>0</ObjectSizeLessThan>", days), catalog.InvalidRequest, "a", "Filter.ObjectSizeLessThan", "between 1 and 1099511627776000"},
	{"greater than -1", filtered("<ObjectSizeGreaterThan>-1</ObjectSizeGreaterThan>", days), catalog.InvalidRequest, "a", "Filter.ObjectSizeGreaterThan", "between 0 and"},
	{"greater than any size", filtered("<ObjectSizeGreaterThan>1099511627776001</ObjectSizeGreaterThan>", days), catalog.InvalidRequest, "a", "Filter.ObjectSizeGreaterThan", "between 0 and"},
	{"sizes that exclude each other", filtered("<And>"+greater+less+"</And>", days), catalog.InvalidRequest, "a", "Filter.And.ObjectSizeLessThan", "has to be a value greater"},

	{"no action", filtered("", ""), catalog.InvalidRequest, "a", "", "At least one action"},
	{"two expirations", filtered("", days+days), catalog.MalformedXML, "a", "Expiration", "more than once"},
	{"empty expiration", filtered("", "<Expiration/>"), catalog.MalformedXML, "a", "Expiration", "one of Days"},
	{"days and date", filtered("", "<Expiration><Days>1</Days><Date>2027-01-01T00:00:00Z</Date></Expiration>"), catalog.MalformedXML, "a", "Expiration", "one of Days"},
	{"days and marker", filtered("", "<Expiration><Days>1</Days><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"), catalog.MalformedXML, "a", "Expiration", "one of Days"},
	{"days and no marker", filtered("", "<Expiration><Days>1</Days><ExpiredObjectDeleteMarker>false</ExpiredObjectDeleteMarker></Expiration>"), catalog.MalformedXML, "a", "Expiration", "one of Days"},
	{"date and marker", filtered("", "<Expiration><Date>2027-01-01T00:00:00Z</Date><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"), catalog.MalformedXML, "a", "Expiration", "one of Days"},
	{"0 days", filtered("", "<Expiration><Days>0</Days></Expiration>"), catalog.InvalidArgument, "a", "Expiration.Days", "'Days' for Expiration action must be a positive integer"},
	{"-1 days", filtered("", "<Expiration><Days>-1</Days></Expiration>"), catalog.InvalidArgument, "a", "Expiration.Days", "positive"},
	{"half a day", filtered("", "<Expiration><Days>0.5</Days></Expiration>"), catalog.MalformedXML, "a", "Expiration.Days", `"0.5"`},
	{"no number of days", filtered("", "<Expiration><Days/></Expiration>"), catalog.MalformedXML, "a", "Expiration.Days", "whole number"},
	{"days of 32 bits", filtered("", "<Expiration><Days>2147483648</Days></Expiration>"), catalog.MalformedXML, "a", "Expiration.Days", "32 bits"},
	{"date at noon", filtered("", "<Expiration><Date>2027-01-01T12:00:00Z</Date></Expiration>"), catalog.InvalidArgument, "a", "Expiration.Date", "'Date' must be at midnight GMT"},
	{"date at a midnight elsewhere", filtered("", "<Expiration><Date>2027-01-01T00:00:00+01:00</Date></Expiration>"), catalog.InvalidArgument, "a", "Expiration.Date", "midnight"},
	{"date a nanosecond late", filtered("", "<Expiration><Date>2027-01-01T00:00:00.000000001Z</Date></Expiration>"), catalog.InvalidArgument, "a", "Expiration.Date", "midnight"},
	{"date of a header", filtered("", "<Expiration><Date>Fri, 01 Jan 2027 00:00:00 GMT</Date></Expiration>"), catalog.MalformedXML, "a", "Expiration.Date", "ISO 8601"},
	{"date of digits", filtered("", "<Expiration><Date>20270101</Date></Expiration>"), catalog.MalformedXML, "a", "Expiration.Date", "ISO 8601"},
	{"day that does not exist", filtered("", "<Expiration><Date>2027-02-29</Date></Expiration>"), catalog.MalformedXML, "a", "Expiration.Date", "ISO 8601"},
	{"marker of yes", filtered("", "<Expiration><ExpiredObjectDeleteMarker>yes</ExpiredObjectDeleteMarker></Expiration>"), catalog.MalformedXML, "a", "Expiration.ExpiredObjectDeleteMarker", `"yes"`},
	{"marker with a tag", filtered(tagA, lone), catalog.InvalidRequest, "a", "Expiration.ExpiredObjectDeleteMarker", "cannot be specified with Tags"},
	{"marker with a size", filtered(greater, lone), catalog.InvalidRequest, "a", "Expiration.ExpiredObjectDeleteMarker", "cannot be specified with Object Size"},
	{"no marker with a size", filtered(less, strings.Replace(lone, "true", "false", 1)), catalog.InvalidRequest, "a", "Expiration.ExpiredObjectDeleteMarker", "cannot be specified with Object Size"},
	{"empty noncurrent", filtered("", "<NoncurrentVersionExpiration/>"), catalog.MalformedXML, "a", "NoncurrentVersionExpiration", "neither"},
	{"0 noncurrent days", filtered("", "<NoncurrentVersionExpiration><NoncurrentDays>0</NoncurrentDays></NoncurrentVersionExpiration>"),
		catalog.InvalidArgument, "a", "NoncurrentVersionExpiration.NoncurrentDays", "'NoncurrentDays' for NoncurrentVersionExpiration action must be a positive integer"},
	{"101 newer versions", filtered("", "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>101</NewerNoncurrentVersions></NoncurrentVersionExpiration>"),
		catalog.InvalidArgument, "a", "NoncurrentVersionExpiration.NewerNoncurrentVersions", "more than 100"},
	{"0 newer versions", filtered("", "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>0</NewerNoncurrentVersions></NoncurrentVersionExpiration>"),
		catalog.InvalidArgument, "a", "NoncurrentVersionExpiration.NewerNoncurrentVersions", "positive"},
	{"newer versions and a legacy prefix", whole("<Rule><ID>a</ID><Status>Enabled</Status><Prefix/><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays>" +
		"<NewerNoncurrentVersions>1</NewerNoncurrentVersions></NoncurrentVersionExpiration></Rule>"), catalog.InvalidRequest, "a", "NoncurrentVersionExpiration.NewerNoncurrentVersions", "Lifecycle V2"},
	{"empty abort", filtered("", "<AbortIncompleteMultipartUpload/>"), catalog.MalformedXML, "a", "AbortIncompleteMultipartUpload", "DaysAfterInitiation is missing"},
	{"abort after 0 days", filtered("", strings.Replace(abort, ">1<", ">0<", 1)), catalog.InvalidArgument, "a", "AbortIncompleteMultipartUpload.DaysAfterInitiation", "positive"},
	{"abort with a tag", filtered(tagA, abort), catalog.InvalidRequest, "a", "AbortIncompleteMultipartUpload", "AbortIncompleteMultipartUpload cannot be specified with Tags"},
	{"abort with a size", filtered("<And><Prefix/>"+greater+"</And>", abort), catalog.InvalidRequest, "a", "AbortIncompleteMultipartUpload", "cannot be specified with Object Size"},
}

func TestMalformedXMLIsRefused(t *testing.T) {
	for _, c := range malformedXML {
		t.Run(c.name, func(t *testing.T) {
			got, err := lifecycle.ParseXML([]byte(c.xml))
			requireRefused(t, err, c.code, c.rule, c.field, c.message)
			require.Equal(t, lifecycle.Configuration{}, got)
		})
	}
}

func ruleJSON(fields string) string {
	return `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{},` + fields + `}]}`
}

const daysJSON = `"Expiration":{"Days":1}`

// What JSON can get wrong that XML cannot; everything behind the form is one.
var malformedJSON = []struct {
	name, json           string
	code                 catalog.Code
	rule, field, message string
}{
	{"nothing", "", catalog.MalformedXML, "", "", "unexpected EOF"},
	{"no JSON", "<a/>", catalog.MalformedXML, "", "", "not well-formed"},
	{"cut off", `{"Rules":[`, catalog.MalformedXML, "", "", "not well-formed"},
	{"cut off in a structure", `{"Rules":[{"ID":"a"`, catalog.MalformedXML, "", "", "not well-formed"},
	{"more after it", ruleJSON(daysJSON) + "{}", catalog.MalformedXML, "", "", "more follows"},
	{"not UTF-8", ruleJSON(`"Prefix":"` + "\xff" + `"`), catalog.MalformedXML, "", "", "UTF-8"},
	{"half a character", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{"Prefix":"\ud83d"},"Expiration":{"Days":1}}]}`, catalog.MalformedXML, "", "", "surrogate"},
	{"the other half", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{"Prefix":"\\\udc18\ud83d"},"Expiration":{"Days":1}}]}`, catalog.MalformedXML, "", "", "surrogate"},
	{"nested deep", strings.Repeat(`{"Rules":[`, 100_000), catalog.MalformedXML, "", "", "too deep"},
	{"list", "[]", catalog.MalformedXML, "", "", "this is a list, not a structure"},
	{"null", "null", catalog.MalformedXML, "", "", "this is null, not a structure"},
	{"no rules", "{}", catalog.InvalidRequest, "", "Rule", "At least one"},
	{"value of a rule without an ID", `{"Rules":[{"Status":"Enabled","Filter":{},"Expiration":{"Days":1}},{"Status":"Enabled","Filter":{},"Expiration":{"Days":0}}]}`,
		catalog.InvalidArgument, "#2", "Expiration.Days", "positive"},
	{"empty list of rules", `{"Rules":[]}`, catalog.InvalidRequest, "", "Rule", "At least one"},
	{"name in lower case", `{"rules":[]}`, catalog.MalformedXML, "", "rules", "does not belong"},
	{"name of XML", `{"Rule":{}}`, catalog.MalformedXML, "", "Rule", "does not belong"},
	{"rules twice", `{"Rules":[],"Rules":[]}`, catalog.MalformedXML, "", "Rules", "more than once"},
	{"rules of no list", `{"Rules":{}}`, catalog.MalformedXML, "", "Rules", "this is a structure, not a list"},
	{"rule of no structure", `{"Rules":[[]]}`, catalog.MalformedXML, "#1", "", "this is a list, not a structure"},
	{"second rule, after branches", `{"Branches":["x"],"Rules":[{"Status":"Enabled","Filter":{},"Expiration":{"Days":1}},{"x":1}]}`, catalog.MalformedXML, "#2", "x", "does not belong"},
	{"field twice", ruleJSON(`"Expiration":{"Days":1},"Expiration":{"Days":2}`), catalog.MalformedXML, "a", "Expiration", "more than once"},
	{"days of a text", ruleJSON(`"Expiration":{"Days":"1"}`), catalog.MalformedXML, "a", "Expiration.Days", "this is a text, not a number"},
	{"days of null", ruleJSON(`"Expiration":{"Days":null}`), catalog.MalformedXML, "a", "Expiration.Days", "this is null"},
	{"days of a fraction", ruleJSON(`"Expiration":{"Days":1.5}`), catalog.MalformedXML, "a", "Expiration.Days", `"1.5"`},
	{"days of an exponent", ruleJSON(`"Expiration":{"Days":1e1}`), catalog.MalformedXML, "a", "Expiration.Days", `"1e1"`},
	{"0 days", ruleJSON(`"Expiration":{"Days":0}`), catalog.InvalidArgument, "a", "Expiration.Days", "positive"},
	{"marker of a text", ruleJSON(`"Expiration":{"ExpiredObjectDeleteMarker":"true"}`), catalog.MalformedXML, "a", "Expiration.ExpiredObjectDeleteMarker", "not true or false"},
	{"filter of a list", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":[],"Expiration":{"Days":1}}]}`, catalog.MalformedXML, "a", "Filter", "this is a list"},
	{"tags outside And", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{"Tags":[]},"Expiration":{"Days":1}}]}`, catalog.MalformedXML, "a", "Filter.Tags", "does not belong"},
	{"tag in And", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{"And":{"Tag":{}}},"Expiration":{"Days":1}}]}`, catalog.MalformedXML, "a", "Filter.And.Tag", "does not belong"},
	{"And of one", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{"And":{"Tags":[{"Key":"a","Value":"b"}]}},"Expiration":{"Days":1}}]}`, catalog.MalformedXML, "a", "Filter.And", "two predicates"},
	{"transitions", ruleJSON(`"Transitions":[{"Days":1,"StorageClass":"GLACIER"}]`), catalog.InvalidRequest, "a", "Transition", "not supported"},
	{"noncurrent transitions", ruleJSON(`"NoncurrentVersionTransitions":[]`), catalog.InvalidRequest, "a", "NoncurrentVersionTransition", "not supported"},
	{"size of transitions", `{"Rules":[],"TransitionDefaultMinimumObjectSize":"varies_by_storage_class"}`, catalog.InvalidRequest, "", "TransitionDefaultMinimumObjectSize", "not supported"},
	{"prefix of a zero byte", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{"Prefix":"\u0000v"},"Expiration":{"Days":1}}]}`, catalog.InvalidArgument, "a", "Filter.Prefix", "XML cannot hold"},
	{"ID of a control character", `{"Rules":[{"ID":"\u0001","Status":"Enabled","Filter":{},"Expiration":{"Days":1}}]}`, catalog.InvalidArgument, "\x01", "ID", "XML cannot hold"},
	{"branch of a number", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{},"Expiration":{"Days":1}}],"Branches":[1]}`, catalog.MalformedXML, "", "Branch", "not a text"},
	{"branch of no name", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{},"Expiration":{"Days":1}}],"Branches":["a b"]}`, catalog.InvalidArgument, "", "Branches", "a b"},
	{"branch twice", `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{},"Expiration":{"Days":1}}],"Branches":["a","a"]}`, catalog.InvalidArgument, "", "Branches", "more than once"},
}

func TestMalformedJSONIsRefused(t *testing.T) {
	for _, c := range malformedJSON {
		t.Run(c.name, func(t *testing.T) {
			got, err := lifecycle.ParseJSON([]byte(c.json))
			requireRefused(t, err, c.code, c.rule, c.field, c.message)
			require.Equal(t, lifecycle.Configuration{}, got)
		})
	}
}

func TestMessagesNameFieldsOnceAndJSONIsNotCalledXML(t *testing.T) {
	for want, document := range map[string]string{
		`lifecycle configuration: MalformedXML: rule "a": Expiratoin: it does not belong here`:                                         filtered("", "<Expiratoin/>"),
		`lifecycle configuration: InvalidRequest: rule "a": Transition: it is not supported`:                                           filtered("", days+"<Transition/>"),
		`lifecycle configuration: MalformedXML: rule "a": Expiration: it is there more than once`:                                      filtered("", days+days),
		`lifecycle configuration: rule "a": Expiratoin: it does not belong here`:                                                       ruleJSON(`"Expiratoin":{}`),
		`lifecycle configuration: the JSON is not well-formed: unexpected EOF`:                                                         `{`,
		`lifecycle configuration: InvalidArgument: rule "a": Expiration.Days: 'Days' for Expiration action must be a positive integer`: ruleJSON(`"Expiration":{"Days":0}`),
	} {
		parse := lifecycle.ParseXML
		if document[0] == '{' {
			parse = lifecycle.ParseJSON
		}
		_, err := parse([]byte(document))
		require.EqualError(t, err, want)
	}
}

// What no document can say.
func TestInvalidConfigurationsAreNotWritten(t *testing.T) {
	one := lifecycle.Rule{ID: "a", Expiration: &lifecycle.Expiration{Days: ptr(1)}}
	for name, c := range map[string]struct {
		change               func(*lifecycle.Rule)
		code                 catalog.Code
		rule, field, message string
	}{
		"days of 33 bits": {func(r *lifecycle.Rule) { r.Expiration = &lifecycle.Expiration{Days: ptr(1 << 31)} }, catalog.InvalidArgument, "a", "Expiration.Days", "positive"},
		"the year 10000": {func(r *lifecycle.Rule) {
			r.Expiration = &lifecycle.Expiration{Date: ptr(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))}
		}, catalog.InvalidArgument, "a", "Expiration.Date", "10000"},
		"no date": {func(r *lifecycle.Rule) {
			r.Expiration = &lifecycle.Expiration{Date: &time.Time{}}
		}, catalog.InvalidArgument, "a", "Expiration.Date", "the year 1"},
		"the year 1969": {func(r *lifecycle.Rule) {
			r.Expiration = &lifecycle.Expiration{Date: ptr(time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC))}
		}, catalog.InvalidArgument, "a", "Expiration.Date", "1969"},
		"the year -1": {func(r *lifecycle.Rule) {
			r.Expiration = &lifecycle.Expiration{Date: ptr(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC))}
		}, catalog.InvalidArgument, "a", "Expiration.Date", "-1"},
		"legacy prefix without prefix": {func(r *lifecycle.Rule) { r.LegacyPrefix = true }, catalog.MalformedXML, "a", "Prefix", "only predicate"},
		"legacy prefix with a tag": {func(r *lifecycle.Rule) {
			r.LegacyPrefix, r.Filter.Prefix, r.Filter.Tags = true, ptr(""), []lifecycle.Tag{{Key: "a"}}
		}, catalog.MalformedXML, "a", "Prefix", "only predicate"},
		"prefix that is not UTF-8":   {func(r *lifecycle.Rule) { r.Filter.Prefix = ptr("\xff") }, catalog.InvalidArgument, "a", "Filter.Prefix", "XML cannot hold"},
		"tag value with a zero byte": {func(r *lifecycle.Rule) { r.Filter.Tags = []lifecycle.Tag{{Key: "a", Value: "\x00"}} }, catalog.InvalidArgument, "a", "Filter.Tag.Value", "XML cannot hold"},
	} {
		t.Run(name, func(t *testing.T) {
			r := one
			c.change(&r)
			invalid := lifecycle.Configuration{Rules: []lifecycle.Rule{r}}
			requireRefused(t, invalid.Validate(), c.code, c.rule, c.field, c.message)
			for _, write := range []func() ([]byte, error){invalid.XML, invalid.JSON} {
				data, err := write()
				requireRefused(t, err, c.code, c.rule, c.field, c.message)
				require.Empty(t, data)
			}
		})
	}
}

func TestAThousandRulesAreAllowed(t *testing.T) {
	var c lifecycle.Configuration
	for i := range lifecycle.MaxRules {
		c.Rules = append(c.Rules, lifecycle.Rule{ID: fmt.Sprint(i), Expiration: &lifecycle.Expiration{Days: ptr(i + 1)}})
	}
	data, err := c.XML()
	require.NoError(t, err)
	got, err := lifecycle.ParseXML(data)
	require.NoError(t, err)
	require.Equal(t, c, got)
}
