/** Registers the endpoints of collections. Where several APIs have the same path, the format of the request selects the collection. */
import { isObservable, of, type Observable } from 'rxjs';
import { GatewayError, type GatewayEvent, type JsonObject } from 'sluice';
import { listFormat, type Call } from 'sluice/internal';
import type { WholeEndpoint } from './core-types.ts';
import type { ObjectServices } from './services.ts';
import { collections, type Collection, type ObjectFormat } from './collections.ts';
import { accountOfReferences } from './pin.ts';
import { referencesInFields } from './references.ts';

/** The handler of a path, for the collection that a request's format has there. */
export type Handle = (
  call: Call,
  collection: Collection,
  params: Readonly<Record<string, string>>,
) => Promise<JsonObject | Observable<GatewayEvent>>;

/** Adds one path of a collection. Where several formats have the path, the headers of a request select one. */
export type AddPath = (
  method: WholeEndpoint['method'],
  collection: Collection,
  behind: string,
  handle: Handle,
) => void;

/** Throws 404 where the query of a request names an object that is not the caller's: it goes to the provider with the request. */
export async function checkQuery(
  call: Call,
  format: ObjectFormat,
  { finding }: Pick<ObjectServices, 'finding'>,
): Promise<void> {
  const references = referencesInFields(call.wire.query, format);
  if (references.length > 0) await accountOfReferences(call, references, finding);
}

/** Returns a function that adds paths, each to the gateway once, also where several collections have it. */
export function pathAdder(services: Pick<ObjectServices, 'tools' | 'finding'>): AddPath {
  const { tools } = services;
  const handlers = new Map<string, Map<string, readonly [Collection, Handle]>>();
  return (method, collection, behind, handle) => {
    for (const base of collection.paths) {
      const path = base + behind;
      const known = handlers.get(`${method} ${path}`);
      if (known !== undefined) {
        known.set(collection.format, [collection, handle]);
        continue;
      }
      const byFormat = new Map([[collection.format as string, [collection, handle] as const]]);
      handlers.set(`${method} ${path}`, byFormat);
      const formats = collections.filter(({ paths }) => paths.includes(base)).map(({ format }) => format);
      tools.endpoint({
        method,
        path,
        format: formats.length === 1 ? collection.format : listFormat,
        readsBody: true,
        handle: async (call: Call, params) => {
          const here = byFormat.get(call.format.name);
          if (here === undefined)
            throw new GatewayError('unknown_url', `There is nothing for this format at ${call.wire.path}.`);
          await checkQuery(call, here[0].format, services);
          const answer = await here[1](call, here[0], params);
          return isObservable(answer) ? answer : of<GatewayEvent>({ type: 'result', value: answer });
        },
      });
    }
  };
}
