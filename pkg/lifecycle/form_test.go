// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/lifecycle"
)

func TestAConfigurationComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfiguration.Draw(t, "configuration")
		require.NoError(t, c.Validate())

		data, err := c.JSON()
		require.NoError(t, err)
		got, err := lifecycle.ParseJSON(data)
		require.NoError(t, err, "%s", data)
		ids := map[string]bool{}
		for i := range c.Rules {
			if c.Rules[i].ID == "" {
				require.NotEmpty(t, got.Rules[i].ID)
				c.Rules[i].ID = got.Rules[i].ID
			}
			ids[c.Rules[i].ID] = true
		}
		require.Len(t, ids, len(c.Rules))
		require.Equal(t, c, got)
		require.Equal(t, c, c.Clone())

		data, err = c.XML()
		require.NoError(t, err)
		got, err = lifecycle.ParseXML(data)
		require.NoError(t, err, "%s", data)
		c.Branches = nil
		require.Equal(t, c, got)
	})
}

// everything is a configuration in which all that can be said is said.
var everything = lifecycle.Configuration{
	Rules: []lifecycle.Rule{
		{
			ID: "old logs", Enabled: true,
			Filter: lifecycle.Filter{
				Prefix: ptr("logs/"), Tags: []lifecycle.Tag{{Key: "team", Value: "blue"}, {Key: "keep", Value: ""}}, SizeGreaterThan: ptr(int64(0)), SizeLessThan: ptr(int64(1 << 40)),
			},
			Expiration:                  &lifecycle.Expiration{Days: ptr(30)},
			NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: ptr(7), NewerNoncurrentVersions: ptr(3)},
		},
		{
			ID:                             "all",
			Expiration:                     &lifecycle.Expiration{ExpiredObjectDeleteMarker: ptr(true)},
			AbortIncompleteMultipartUpload: &lifecycle.AbortIncompleteMultipartUpload{DaysAfterInitiation: 1},
		},
		{ID: "by date", Enabled: true, Filter: lifecycle.Filter{Tags: []lifecycle.Tag{{Key: "a", Value: "b"}}}, Expiration: &lifecycle.Expiration{Date: ptr(time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC))}},
	},
	Branches: []string{"dev"},
}

func TestBothFormsAreThoseOfS3(t *testing.T) {
	data, err := everything.XML()
	require.NoError(t, err)
	require.Equal(t, `<?xml version="1.0" encoding="UTF-8"?>
<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`+
		`<Rule><ID>old logs</ID><Filter><And><Prefix>logs/</Prefix><Tag><Key>team</Key><Value>blue</Value></Tag><Tag><Key>keep</Key><Value></Value></Tag>`+
		`<ObjectSizeGreaterThan>0</ObjectSizeGreaterThan><ObjectSizeLessThan>1099511627776</ObjectSizeLessThan></And></Filter><Status>Enabled</Status>`+
		`<Expiration><Days>30</Days></Expiration>`+
		`<NoncurrentVersionExpiration><NoncurrentDays>7</NoncurrentDays><NewerNoncurrentVersions>3</NewerNoncurrentVersions></NoncurrentVersionExpiration></Rule>`+
		`<Rule><ID>all</ID><Filter/><Status>Disabled</Status><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>`+
		`<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>`+
		`<Rule><ID>by date</ID><Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter><Status>Enabled</Status><Expiration><Date>2027-01-02T00:00:00.000Z</Date></Expiration></Rule>`+
		`</LifecycleConfiguration>`, string(data))

	data, err = everything.JSON()
	require.NoError(t, err)
	require.Equal(t, `{"Rules":[`+
		`{"ID":"old logs","Filter":{"And":{"Prefix":"logs/","Tags":[{"Key":"team","Value":"blue"},{"Key":"keep","Value":""}],"ObjectSizeGreaterThan":0,"ObjectSizeLessThan":1099511627776}},`+
		`"Status":"Enabled","Expiration":{"Days":30},"NoncurrentVersionExpiration":{"NoncurrentDays":7,"NewerNoncurrentVersions":3}},`+
		`{"ID":"all","Filter":{},"Status":"Disabled","Expiration":{"ExpiredObjectDeleteMarker":true},"AbortIncompleteMultipartUpload":{"DaysAfterInitiation":1}},`+
		`{"ID":"by date","Filter":{"Tag":{"Key":"a","Value":"b"}},"Status":"Enabled","Expiration":{"Date":"2027-01-02T00:00:00.000Z"}}],`+
		`"Branches":["dev"]}`, string(data))
}

// rule wraps what a rule holds beside a filter and a status.
func rule(inside string) string {
	return "<LifecycleConfiguration><Rule><Filter/><Status>Enabled</Status>" + inside + "</Rule></LifecycleConfiguration>"
}

const days = "<Expiration><Days>1</Days></Expiration>"

func TestWhatS3AcceptsIsAccepted(t *testing.T) {
	one := lifecycle.Rule{ID: "a", Enabled: true, Expiration: &lifecycle.Expiration{Days: ptr(1)}}
	prefixed := func(prefix string) lifecycle.Rule {
		r := one
		r.Filter.Prefix = &prefix
		return r
	}
	legacy := prefixed("")
	legacy.LegacyPrefix = true
	dated := func(year int, month time.Month, day int) lifecycle.Rule {
		return lifecycle.Rule{ID: "a", Enabled: true, Expiration: &lifecycle.Expiration{Date: ptr(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))}}
	}
	id := "<ID>a</ID>"
	for name, c := range map[string]struct {
		xml  string
		want lifecycle.Rule
	}{
		"any order, white space, comments": {`<?xml version="1.0"?> <!-- a -->
			<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
				<Rule> <Expiration> <Days> 1 </Days> </Expiration> <Status>Enabled</Status> <Filter> </Filter> <ID>a</ID> <!-- b --> </Rule>
			</LifecycleConfiguration> `, one},
		"a byte order mark":          {"\ufeff" + rule(id+days), one},
		"a prefix for the namespace": {`<s:LifecycleConfiguration xmlns:s="http://s3.amazonaws.com/doc/2006-03-01/"><s:Rule><s:ID>a</s:ID><s:Filter/><s:Status>Enabled</s:Status><s:Expiration><s:Days>1</s:Days></s:Expiration></s:Rule></s:LifecycleConfiguration>`, one},
		"attributes about a schema": {`<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="x">` +
			`<Rule><ID>a</ID><Filter/><Status>Enabled</Status>` + days + `</Rule></LifecycleConfiguration>`, one},
		"a prefix that is empty":        {`<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix/></Filter><Status>Enabled</Status>` + days + `</Rule></LifecycleConfiguration>`, prefixed("")},
		"a prefix of white space":       {`<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix> &#9;</Prefix></Filter><Status>Enabled</Status>` + days + `</Rule></LifecycleConfiguration>`, prefixed(" \t")},
		"a prefix in pieces":            {`<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix>a<!-- -->b<![CDATA[<c>]]>&amp;</Prefix></Filter><Status>Enabled</Status>` + days + `</Rule></LifecycleConfiguration>`, prefixed("ab<c>&")},
		"a legacy prefix that is empty": {`<LifecycleConfiguration><Rule><ID>a</ID><Prefix></Prefix><Status>Enabled</Status>` + days + `</Rule></LifecycleConfiguration>`, legacy},
		"a date alone":                  {rule(id + "<Expiration><Date>2027-03-04</Date></Expiration>"), dated(2027, 3, 4)},
		"a date with a fraction":        {rule(id + "<Expiration><Date>2027-03-04T00:00:00.000Z</Date></Expiration>"), dated(2027, 3, 4)},
		"a date without a zone":         {rule(id + "<Expiration><Date>2027-03-04T00:00:00</Date></Expiration>"), dated(2027, 3, 4)},
		"a date in another zone":        {rule(id + "<Expiration><Date>2027-03-04T02:00:00+02:00</Date></Expiration>"), dated(2027, 3, 4)},
		"the first date":                {rule(id + "<Expiration><Date>1970-01-01T00:00:00Z</Date></Expiration>"), dated(1970, 1, 1)},
		"a marker rule that does nothing": {rule(id + "<Expiration><ExpiredObjectDeleteMarker>false</ExpiredObjectDeleteMarker></Expiration>"),
			lifecycle.Rule{ID: "a", Enabled: true, Expiration: &lifecycle.Expiration{ExpiredObjectDeleteMarker: ptr(false)}}},
		"100 versions": {rule(id + "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>100</NewerNoncurrentVersions></NoncurrentVersionExpiration>"),
			lifecycle.Rule{ID: "a", Enabled: true, NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: ptr(1), NewerNoncurrentVersions: ptr(100)}}},
		"a count without days": {rule(id + "<NoncurrentVersionExpiration><NewerNoncurrentVersions>5</NewerNoncurrentVersions></NoncurrentVersionExpiration>"),
			lifecycle.Rule{ID: "a", Enabled: true, NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NewerNoncurrentVersions: ptr(5)}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lifecycle.ParseXML([]byte(c.xml))
			require.NoError(t, err)
			require.Equal(t, lifecycle.Configuration{Rules: []lifecycle.Rule{c.want}}, got)
		})
	}
}

func TestJSONKeepsCharactersThatAreEscaped(t *testing.T) {
	c, err := lifecycle.ParseJSON([]byte(`{"Rules":[{"ID":"a","Status":"Enabled","Filter":{"Prefix":"\ud83d\udc18\u00e9\\ud83d\ufffd�"},"Expiration":{"Days":1}}]}`))
	require.NoError(t, err)
	require.Equal(t, `🐘é\ud83d`+"\ufffd\ufffd", *c.Rules[0].Filter.Prefix)
}

func TestIDsAreMadeUpFromWhatRulesSay(t *testing.T) {
	three := "<Rule><Filter/><Status>Enabled</Status>" + days + "</Rule>"
	other := "<Rule><Filter/><Status>Disabled</Status>" + days + "<ID/></Rule>"
	parse := func(rules string) (ids []string) {
		c, err := lifecycle.ParseXML([]byte("<LifecycleConfiguration>" + rules + "</LifecycleConfiguration>"))
		require.NoError(t, err)
		for _, r := range c.Rules {
			ids = append(ids, r.ID)
		}
		return ids
	}
	ids := parse(three + three + other + three)
	require.Equal(t, ids, parse(three+three+other+three))
	require.Equal(t, []string{ids[0], ids[0] + "-2", ids[2], ids[0] + "-3"}, ids)
	require.NotEqual(t, ids[0], ids[2])
	require.Equal(t, []string{ids[0], ids[0] + "-2"}, parse("<Rule><ID>"+ids[0]+"</ID>"+three[len("<Rule>"):]+three))
}

func FuzzParseXML(f *testing.F) {
	for _, c := range malformedXML {
		f.Add([]byte(c.xml))
	}
	data, err := everything.XML()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := lifecycle.ParseXML(data)
		requireStable(t, c, err, lifecycle.Configuration.XML, lifecycle.ParseXML)
	})
}

func FuzzParseJSON(f *testing.F) {
	for _, c := range malformedJSON {
		f.Add([]byte(c.json))
	}
	data, err := everything.JSON()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := lifecycle.ParseJSON(data)
		requireStable(t, c, err, lifecycle.Configuration.JSON, lifecycle.ParseJSON)
	})
}

// requireStable holds what a parser returned to be refused with a ConfigError, or else to be the same when it is written and read again.
func requireStable(t *testing.T, c lifecycle.Configuration, err error, write func(lifecycle.Configuration) ([]byte, error), parse func([]byte) (lifecycle.Configuration, error)) {
	if err != nil {
		var refused *lifecycle.ConfigError
		require.ErrorAs(t, err, &refused)
		require.NotEmpty(t, refused.Message)
		require.Equal(t, lifecycle.Configuration{}, c)
		return
	}
	require.NoError(t, c.Validate())
	data, err := write(c)
	require.NoError(t, err)
	again, err := parse(data)
	require.NoError(t, err, "%s", data)
	require.Equal(t, c, again)
}
