/** Begins the addresses (ARNs) of models that this gateway lists. No provider has a region of this name. */
export const ownAddress = 'arn:aws:bedrock:sluice::foundation-model/';

/** Returns the name of a model that a client gives by the address in which the gateway listed it; any other name as it is. */
export function withoutAddress(model: string): string {
  return model.startsWith(ownAddress) ? model.slice(ownAddress.length) : model;
}

/** Addresses of models that a provider has for everybody: behind the slash stands the name. */
const commonAddress = /^arn:[\w-]+:bedrock:[\w-]*:\d*:(?:foundation-model|inference-profile)\/(.+)$/;

/** Returns the name of a model that is given by an address of the gateway's or of a provider's; any other name as it is. */
export function nameInAddress(model: string): string {
  return commonAddress.exec(model)?.[1] ?? model;
}
