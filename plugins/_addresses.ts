import type { ApiKey } from 'sluice';
import { addressList, type AddressList } from 'sluice/internal';

/** One list per key record: a changed record is another object. */
const lists = new WeakMap<ApiKey, AddressList>();

/** Whether a key may be used from this address. An entry that is neither an address nor a range matches nothing. */
export function allowsAddress(key: ApiKey, address: string): boolean {
  if (key.addresses === undefined) return true;
  let list = lists.get(key);
  if (list === undefined) lists.set(key, (list = addressList(key.addresses)));
  return list.has(address);
}
