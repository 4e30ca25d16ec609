import { addressList, type AddressList, type ApiKey, type Owner } from 'sluice';

/** Address lists by key or owner record. A changed record is a new object, so it gets a new list. */
const lists = new WeakMap<ApiKey | Owner, AddressList>();

/** Returns true when a key, and all of its owners, may be used from this address. An entry that is neither an address nor a range matches nothing. */
export function allowsAddress(key: ApiKey, address: string): boolean {
  return isListed(key, address) && (key.owners ?? []).every((owner) => isListed(owner, address));
}

function isListed(record: ApiKey | Owner, address: string): boolean {
  if (record.addresses === undefined) return true;
  let list = lists.get(record);
  if (list === undefined) lists.set(record, (list = addressList(record.addresses)));
  return list.has(address);
}
