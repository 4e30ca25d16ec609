/** Begins the addresses (ARNs) of models that this gateway lists. No provider has a region of this name. */
export const ownAddress = 'arn:aws:bedrock:sluice::foundation-model/';

/** Begins the addresses of inference profiles that this gateway lists. */
export const ownProfileAddress = 'arn:aws:bedrock:sluice::inference-profile/';

/** Returns the name of a model from the resource path in which the gateway listed it. Any other name is returned unchanged. */
export function withoutAddress(model: string): string {
  const address = [ownAddress, ownProfileAddress].find((own) => model.startsWith(own)) ?? '';
  return model.slice(address.length);
}

/** Addresses of models that a provider has for everybody: behind the slash stands the name. */
const commonAddress = /^arn:[\w-]+:bedrock:[\w-]*:\d*:(?:foundation-model|inference-profile)\/(.+)$/;

/** Returns the name of a model from a resource path of the gateway or of a provider. Any other name is returned unchanged. */
export function nameInAddress(model: string): string {
  return commonAddress.exec(model)?.[1] ?? model;
}
