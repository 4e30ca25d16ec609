import { GatewayError, type JsonObject } from 'sluice';
import { addressesIn } from 'sluice/internal';
import type { NamedAddress } from './core-types.ts';

/** Maximum lengths of an address and of the path of its member, in characters. Keys in S3 and GCS have up to 1024 bytes. */
const longestAddress = 2000;
const longestPath = 200;

/** Addresses of storage that the lines of a file name, each once. */
export class LineAddresses {
  readonly #found = new Map<string, NamedAddress>();

  get size(): number {
    return this.#found.size;
  }

  get all(): readonly NamedAddress[] {
    return [...this.#found.values()];
  }

  /** Adds those of a request, by its place among the others. Throws 400 for one that is too long to be kept. */
  addOf(body: JsonObject, index: number): void {
    for (const { path, ...address } of addressesIn(body))
      this.add({ ...address, path: `requests[${index}].${path}`.slice(0, longestPath) });
  }

  add(address: NamedAddress): void {
    const { use, value } = address;
    if (value.length > longestAddress)
      throw new GatewayError('invalid_value', `An address has more than ${longestAddress} characters.`);
    const key = `${use} ${value}`;
    if (!this.#found.has(key)) this.#found.set(key, address);
  }
}
