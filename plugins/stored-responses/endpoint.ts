import type { Endpoint, JsonObject } from 'sluice';

/** A request to an endpoint, with what all of them need. */
export interface EndpointRequest {
  /** The caller's id; everything that is kept belongs to one. */
  readonly owner: string;
  /** What the path names: `id`, and `item` where there is one. */
  readonly params: { readonly id: string; readonly item: string };
  readonly query: URLSearchParams;
  readonly body: JsonObject;
}

/** Adds one path, whose handler gives the reply's body or throws a GatewayError. */
export type AddEndpoint = (
  method: Endpoint['method'],
  path: string,
  handle: (request: EndpointRequest) => Promise<JsonObject>,
) => void;
