import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matches, parseFilter } from '../../../../plugins/admin/scim/filter.ts';

const user = {
  id: 'usr_1',
  userName: 'Bjensen@example.com',
  externalId: 'AbC',
  name: { familyName: 'Jensen' },
  active: true,
  emails: [
    { type: 'work', value: 'bjensen@example.com', primary: true },
    { type: 'home', value: 'babs@jensen.org' },
  ],
  meta: { lastModified: '2026-05-13T04:42:34Z' },
};

describe('a SCIM filter', () => {
  // The examples of RFC 7644, section 3.4.2.2, with values of this user.
  test.each([
    ['userName Eq "bjensen@example.com"', true],
    ['name.familyName co "ENS"', true],
    ['urn:ietf:params:scim:schemas:core:2.0:User:userName sw "B"', true],
    ['externalId eq "abc"', false],
    ['externalId eq "AbC"', true],
    ['title pr', false],
    ['emails pr and active eq true', true],
    ['active eq "True"', true],
    ['active eq false', false],
    ['meta.lastModified gt "2026-05-13T04:42:33Z"', true],
    ['meta.lastModified le "2026-05-13T04:42:33Z"', false],
    ['userName eq "x" or not (emails co "example.org" or emails.value ew "nothing")', true],
    ['emails[type eq "work" and value co "@example.com"]', true],
    ['emails[type eq "home" and value co "@example.com"]', false],
    ['emails.type eq "home"', true],
    ['title eq null', true],
    ['userName ne "other"', true],
  ])('%s is %s', (filter, expected) => {
    expect(matches(parseFilter(filter), user)).toBe(expected);
  });

  test.each([
    'userName',
    'userName eq',
    'userName is "x"',
    'userName eq "x',
    '(userName eq "x"',
    'userName eq "x" and',
    'userName eq "x" "y"',
    'emails[type eq "work"',
    '""',
    `${'('.repeat(20)}a pr${')'.repeat(20)}`,
    Array.from({ length: 60 }, () => 'a pr').join(' or '),
    `userName eq "${'x'.repeat(3_000)}"`,
  ])('that is none, or too long, is refused: %.60s', (filter) => {
    expect(() => parseFilter(filter)).toThrow(
      expect.objectContaining({ status: 400, scimType: 'invalidFilter' }),
    );
  });

  test('of any text is read or refused, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 200, unit: fc.constantFrom(...'ab ."()[]\\0-eqandornot:$') }),
        (text) => {
          try {
            matches(parseFilter(text), user);
          } catch (error) {
            expect(error).toMatchObject({ status: 400 });
          }
        },
      ),
    );
  });
});
