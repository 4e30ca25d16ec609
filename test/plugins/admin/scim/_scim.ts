/** A directory that provisions by SCIM, as tests script it. */
import { expect } from 'vitest';

/** The bearer token of directories in these tests. */
export const scimToken = 'a-scim-token-of-more-than-32-characters';

/** A body of SCIM. Its members are those that tests look into; others are there too. */
export interface ScimBody {
  readonly id: string;
  readonly userName: string;
  readonly totalResults: number;
  readonly groups: readonly { readonly value: string }[];
  readonly Resources: readonly ScimBody[];
}

/** A response of SCIM. */
export interface ScimAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ScimBody;
}

/** Sends requests to the SCIM of a gateway. */
export interface ScimClient {
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ScimAnswer>;
  /** Sends and fails unless the status is this one. */
  expectStatus(
    status: number,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<ScimBody>;
}

/** Returns a client of the SCIM at this gateway. */
export function scimClient(url: string, token = scimToken): ScimClient {
  const send: ScimClient['send'] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${url}/scim/v2${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/scim+json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (text !== '') expect(response.headers.get('content-type')).toMatch(/^application\/scim\+json/);
    return {
      status: response.status,
      headers: response.headers,
      body: JSON.parse(text === '' ? 'null' : text) as ScimBody,
    };
  };
  return {
    send,
    async expectStatus(status, method, path, body, headers) {
      const answer = await send(method, path, body, headers);
      expect({ status: answer.status, body: answer.body }).toMatchObject({ status });
      return answer.body;
    },
  };
}

/** The body of a PATCH. */
export function patch(...operations: readonly object[]): object {
  return { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: operations };
}

/** A query of a list with this filter. */
export function filtered(filter: string): string {
  return `?filter=${encodeURIComponent(filter)}`;
}
