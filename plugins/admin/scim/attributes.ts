/** The attributes of users and groups (RFC 7643): one table, for the schemas that are shown and for what is read. */

/** URNs of the schemas. */
export const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const groupSchema = 'urn:ietf:params:scim:schemas:core:2.0:Group';

/** An attribute, in the words of RFC 7643, section 7. */
export interface Attribute {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'complex' | 'reference' | 'dateTime';
  readonly description: string;
  readonly multiValued: boolean;
  readonly required: boolean;
  readonly caseExact: boolean;
  readonly mutability: 'readOnly' | 'readWrite' | 'immutable';
  readonly returned: 'default' | 'always';
  readonly uniqueness: 'none' | 'server';
  readonly referenceTypes?: readonly string[];
  readonly subAttributes?: readonly Attribute[];
}

function attribute(
  name: string,
  description: string,
  more: Partial<Omit<Attribute, 'name' | 'description'>> = {},
): Attribute {
  return {
    name,
    description,
    type: 'string',
    multiValued: false,
    required: false,
    caseExact: false,
    mutability: 'readWrite',
    returned: 'default',
    uniqueness: 'none',
    ...more,
  };
}

/** Attributes of a user, without those that every resource has. */
export const userAttributes: readonly Attribute[] = [
  attribute('userName', 'Name by which the directory knows the user.', {
    required: true,
    uniqueness: 'server',
  }),
  attribute('name', 'Parts of the name.', {
    type: 'complex',
    subAttributes: [
      attribute('formatted', 'Full name.'),
      attribute('familyName', 'Family name.'),
      attribute('givenName', 'Given name.'),
    ],
  }),
  attribute('displayName', 'Name that the page shows.'),
  attribute('emails', 'Emails. The primary one, or else the first, is the one to sign in with.', {
    type: 'complex',
    multiValued: true,
    required: true,
    subAttributes: [
      attribute('value', 'Email.', { required: true }),
      attribute('type', 'Kind, such as work.'),
      attribute('primary', 'True for at most one.', { type: 'boolean' }),
    ],
  }),
  attribute('active', 'False: the user cannot sign in.', { type: 'boolean' }),
  attribute('groups', 'Groups of the user.', {
    type: 'complex',
    multiValued: true,
    mutability: 'readOnly',
    subAttributes: [
      attribute('value', 'Id of the group.', { mutability: 'readOnly', caseExact: true }),
      attribute('$ref', 'Address of the group.', {
        type: 'reference',
        referenceTypes: ['Group'],
        mutability: 'readOnly',
        caseExact: true,
      }),
      attribute('display', 'Name of the group.', { mutability: 'readOnly' }),
    ],
  }),
];

/** Attributes of a group, which is a team. */
export const groupAttributes: readonly Attribute[] = [
  attribute('displayName', 'Name of the team.', { required: true, uniqueness: 'server' }),
  attribute('members', 'Users of the team.', {
    type: 'complex',
    multiValued: true,
    subAttributes: [
      attribute('value', 'Id of the user.', { mutability: 'immutable', caseExact: true }),
      attribute('$ref', 'Address of the user.', {
        type: 'reference',
        referenceTypes: ['User'],
        mutability: 'immutable',
        caseExact: true,
      }),
      attribute('type', 'User.', { mutability: 'immutable' }),
      attribute('display', 'Name of the user.', { mutability: 'readOnly' }),
    ],
  }),
];

/** Attributes of every resource. They are in no schema that is shown. */
export const commonAttributes: readonly Attribute[] = [
  attribute('id', 'Id of the resource.', { mutability: 'readOnly', caseExact: true, returned: 'always' }),
  attribute('externalId', 'Id at the directory.', { caseExact: true }),
  attribute('schemas', 'Schemas of the resource.', {
    mutability: 'readOnly',
    multiValued: true,
    returned: 'always',
  }),
  attribute('meta', 'Times and address.', {
    type: 'complex',
    mutability: 'readOnly',
    subAttributes: [
      attribute('resourceType', 'User or Group.', { mutability: 'readOnly', caseExact: true }),
      attribute('created', 'When it was made.', { type: 'dateTime', mutability: 'readOnly' }),
      attribute('lastModified', 'When it was changed.', { type: 'dateTime', mutability: 'readOnly' }),
      attribute('location', 'Its address.', { mutability: 'readOnly', caseExact: true }),
      attribute('version', 'Its ETag.', { mutability: 'readOnly', caseExact: true }),
    ],
  }),
];

/** Finds an attribute by its name in any case. */
export function findAttribute(attributes: readonly Attribute[], name: string): Attribute | undefined {
  const sought = name.toLowerCase();
  return attributes.find((one) => one.name.toLowerCase() === sought);
}

/** Removes the URN of a supported schema from a path. Returns undefined for an attribute of another schema. */
export function withoutUrn(path: string): string | undefined {
  if (!/^urn:/i.test(path)) return path;
  const urn = [userSchema, groupSchema].find((one) => path.toLowerCase().startsWith(`${one.toLowerCase()}:`));
  return urn === undefined ? undefined : path.slice(urn.length + 1);
}
