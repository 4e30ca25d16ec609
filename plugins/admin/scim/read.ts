/** Reads the users and groups that a directory sends. */
import type { JsonObject, JsonValue } from 'sluice';
import {
  commonAttributes,
  findAttribute,
  groupAttributes,
  userAttributes,
  type Attribute,
} from './attributes.ts';
import { ScimError } from './errors.ts';
import { booleanOf } from './filter.ts';

/** Maximum number of emails of a user, members in a request, and characters of a text. */
const limits = { emails: 20, members: 10_000, text: 500 };

/** An email of a user. */
export interface Email {
  readonly value: string;
  readonly type?: string;
  readonly primary?: boolean;
}

/** A user as a directory describes it. */
export interface GivenUser {
  readonly userName: string;
  readonly externalId?: string;
  readonly name?: { readonly formatted?: string; readonly familyName?: string; readonly givenName?: string };
  readonly displayName?: string;
  readonly emails: readonly Email[];
  readonly active: boolean;
}

/** A group as a directory describes it. */
export interface GivenGroup {
  readonly displayName: string;
  readonly externalId?: string;
  /** Ids of the users; undefined when the request does not contain them. */
  readonly members: readonly string[] | undefined;
}

/** Reads a user. Throws 400 for what none can be. */
export function readUser(body: JsonValue): GivenUser {
  const fields = fieldsOf(body, userAttributes);
  const userName = textAt(fields, 'userName');
  if (userName === undefined) throw invalid('userName is missing.');
  const externalId = textAt(fields, 'externalId');
  const name = nameOf(fields['name']);
  const displayName = textAt(fields, 'displayName');
  const active = fields['active'] === undefined ? true : booleanOf(fields['active']);
  if (active === undefined) throw invalid('active must be true or false.');
  return {
    userName,
    ...(externalId === undefined ? {} : { externalId }),
    ...(name === undefined ? {} : { name }),
    ...(displayName === undefined ? {} : { displayName }),
    emails: emailsOf(fields['emails']),
    active,
  };
}

/** Reads a group. Throws 400 for what none can be. */
export function readGroup(body: JsonValue): GivenGroup {
  const fields = fieldsOf(body, groupAttributes);
  const displayName = textAt(fields, 'displayName');
  if (displayName === undefined) throw invalid('displayName is missing.');
  const externalId = textAt(fields, 'externalId');
  const listed = fields['members'];
  if (listed !== undefined && !Array.isArray(listed)) throw invalid('members must be a list.');
  if (listed !== undefined && listed.length > limits.members)
    throw new ScimError(413, `A request has at most ${limits.members} members.`);
  const members = listed?.map((one) => {
    const id = isObject(one) ? memberOf(one, 'value') : one;
    if (typeof id !== 'string') throw invalid('A member must have a value.');
    return id;
  });
  return {
    displayName,
    ...(externalId === undefined ? {} : { externalId }),
    members: members === undefined ? undefined : [...new Set(members)],
  };
}

/** Returns the email to sign in with: the primary one, or else the first, or else a user name that is one. */
export function emailOf({ emails, userName }: Pick<GivenUser, 'emails' | 'userName'>): string {
  const email = (emails.find(({ primary }) => primary === true) ?? emails[0])?.value ?? userName;
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw invalid('The user needs an email, or a userName that is one.');
  return email;
}

/** Returns the name that the page shows. */
export function nameToShow({ displayName, name, userName }: GivenUser): string {
  const parts = [name?.givenName, name?.familyName].filter((part) => part !== undefined).join(' ');
  const shown = displayName ?? name?.formatted ?? (parts === '' ? userName : parts);
  return shown.slice(0, 100);
}

/** Returns the members that are known, under the names of the schema. Nulls count as absent. */
function fieldsOf(body: JsonValue, attributes: readonly Attribute[]): Record<string, JsonValue> {
  if (!isObject(body)) throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax');
  const fields: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(body)) {
    const known = findAttribute([...attributes, ...commonAttributes], name);
    if (known !== undefined && value !== undefined && value !== null) fields[known.name] = value;
  }
  return fields;
}

function textAt(fields: JsonObject, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw invalid(`${name} must be a text.`);
  if (value.length > limits.text) throw invalid(`${name} has at most ${limits.text} characters.`);
  return value;
}

function nameOf(value: JsonValue | undefined): GivenUser['name'] | undefined {
  if (value === undefined) return undefined;
  if (!isObject(value)) throw invalid('name must be an object.');
  const parts: Record<string, string> = {};
  for (const part of ['formatted', 'familyName', 'givenName'] as const) {
    const text = textAt({ [part]: memberOf(value, part.toLowerCase()) ?? null }, part);
    if (text !== undefined) parts[part] = text;
  }
  return Object.keys(parts).length === 0 ? undefined : parts;
}

function emailsOf(value: JsonValue | undefined): Email[] {
  if (value === undefined) return [];
  const listed = Array.isArray(value) ? (value as readonly JsonValue[]) : [value];
  if (listed.length > limits.emails) throw invalid(`A user has at most ${limits.emails} emails.`);
  const emails = listed.map((one): Email | undefined => {
    const object: JsonObject = isObject(one) ? one : { value: one };
    const email = textAt({ value: memberOf(object, 'value') ?? null }, 'value');
    const type = textAt({ type: memberOf(object, 'type') ?? null }, 'type');
    const primary = booleanOf(memberOf(object, 'primary'));
    if (email === undefined) return undefined;
    return {
      value: email,
      ...(type === undefined ? {} : { type }),
      ...(primary === undefined ? {} : { primary }),
    };
  });
  return emails.filter((one) => one !== undefined);
}

function memberOf(object: JsonObject, name: string): JsonValue | undefined {
  const found = Object.keys(object).find((key) => key.toLowerCase() === name);
  return found === undefined ? undefined : object[found];
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(message: string): ScimError {
  return new ScimError(400, message, 'invalidValue');
}
