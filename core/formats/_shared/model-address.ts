/** Begins the addresses (ARNs) of models that this gateway lists. No provider has a region of this name. */
export const ownAddress = 'arn:aws:bedrock:sluice::foundation-model/';

/** Begins the addresses of inference profiles that this gateway lists. */
export const ownProfileAddress = 'arn:aws:bedrock:sluice::inference-profile/';

/** Returns the name of a model that a client gives by the address in which the gateway listed it; any other name as it is. */
export function withoutAddress(model: string): string {
  const address = [ownAddress, ownProfileAddress].find((own) => model.startsWith(own)) ?? '';
  return model.slice(address.length);
}

/** Addresses of models that a provider has for everybody: behind the slash stands the name. */
const commonAddress = /^arn:[\w-]+:bedrock:[\w-]*:\d*:(?:foundation-model|inference-profile)\/(.+)$/;

/** Returns the name of a model that is given by an address of the gateway's or of a provider's; any other name as it is. */
export function nameInAddress(model: string): string {
  return commonAddress.exec(model)?.[1] ?? model;
}
