/** Descriptions that SCIM clients read: features, kinds of resources and schemas (RFC 7643, sections 5 to 7). */
import type { JsonObject } from 'sluice';
import { groupAttributes, groupSchema, userAttributes, userSchema, type Attribute } from './attributes.ts';

const coreSchemas = 'urn:ietf:params:scim:schemas:core:2.0';

/** Returns the features of this service. */
export function serviceProviderConfig(base: string): JsonObject {
  return {
    schemas: [`${coreSchemas}:ServiceProviderConfig`],
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: 200 },
    changePassword: { supported: false },
    sort: { supported: true },
    etag: { supported: true },
    authenticationSchemes: [
      {
        type: 'oauthbearertoken',
        name: 'Bearer token',
        description: 'The token of the option scim.token, in the header Authorization.',
        primary: true,
      },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
  };
}

/** Returns the kinds of resources. */
export function resourceTypes(base: string): readonly JsonObject[] {
  const kinds = [
    { name: 'User', endpoint: '/Users', description: 'Person who signs in.', schema: userSchema },
    { name: 'Group', endpoint: '/Groups', description: 'Team.', schema: groupSchema },
  ];
  return kinds.map((kind) => ({
    schemas: [`${coreSchemas}:ResourceType`],
    id: kind.name,
    ...kind,
    meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${kind.name}` },
  }));
}

/** Returns the schemas of the resources. */
export function schemas(base: string): readonly JsonObject[] {
  const shown: readonly (readonly [string, string, string, readonly Attribute[]])[] = [
    [userSchema, 'User', 'Person who signs in.', userAttributes],
    [groupSchema, 'Group', 'Team.', groupAttributes],
  ];
  return shown.map(([id, name, description, attributes]) => ({
    schemas: [`${coreSchemas}:Schema`],
    id,
    name,
    description,
    attributes: attributes as unknown as JsonObject[],
    meta: { resourceType: 'Schema', location: `${base}/Schemas/${id}` },
  }));
}
