/** Types with which the endpoints of responses and conversations are added. */
import type { Endpoint, JsonObject } from 'sluice';

/** A request to one of the endpoints. */
export interface EndpointRequest {
  /** Id of the caller, who owns what it stores. */
  readonly owner: string;
  /** Parameters of the path: `id`, and `item` where there is one. */
  readonly params: { readonly id: string; readonly item: string };
  readonly query: URLSearchParams;
  readonly body: JsonObject;
}

/** Adds an endpoint whose handler returns the body of the response or throws a GatewayError. */
export type AddEndpoint = (
  method: Endpoint['method'],
  path: string,
  handle: (request: EndpointRequest) => Promise<JsonObject>,
) => void;
