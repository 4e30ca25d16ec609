import type { ChannelTools, Upstream } from 'sluice';
import { hideSecret } from 'sluice/internal';
import { AwsIdentity } from './_aws-identity.ts';
import type { AwsCredentials } from './_aws-signature.ts';
import { refusalTeller } from './_refusals.ts';

/** What of a channel's options says where it asks, and as whom. */
export interface PlaceOptions {
  readonly baseUrl?: string | undefined;
  readonly region?: string | undefined;
  readonly regions?: readonly string[] | undefined;
  readonly regionOrder: 'turns' | 'preference';
  readonly profile?: string | undefined;
  readonly roleArn?: string | undefined;
  readonly externalId?: string | undefined;
}

type Tools = Pick<ChannelTools, 'keys' | 'log'>;

/** Each region with each key is a key of its own to the gateway, which knows what to do with keys that fail. */
export function inRegions<
  Chosen extends {
    readonly regions?: readonly string[] | undefined;
    readonly key?: string | undefined;
    readonly keys?: readonly string[];
  },
>(chosen: Chosen): Chosen {
  const { regions, key, keys, ...rest } = chosen;
  if (regions === undefined) return chosen;
  const all = [key, ...(keys ?? [])].filter((one) => one !== undefined);
  const places = regions.flatMap((region) =>
    all.length === 0 ? [region] : all.map((one) => `${region} ${one}`),
  );
  return { ...rest, regions, keys: places } as unknown as Chosen;
}

/** A region, and who asks there. */
export interface Place {
  readonly region: string;
  readonly apiKey?: string;
  readonly credentials?: () => Promise<AwsCredentials>;
  /** Tells the log of an identity that was found and is refused. */
  readonly told?: (answer: Upstream) => Upstream;
  forget(): void;
}

/** The places of a channel, one for each of its keys. Throws where no region is named. */
export function placesOf(chosen: PlaceOptions, tools: Tools): readonly Place[] {
  const { region, regions, baseUrl } = chosen;
  const home = region ?? regions?.[0] ?? regionIn(baseUrl);
  if (home === undefined)
    throw new Error("it needs a region: region: 'us-east-1', or region: env('AWS_REGION').");
  const identities = new Map<string, AwsIdentity>();
  const identity = (where: string): AwsIdentity => {
    const known = identities.get(where) ?? new AwsIdentity({ ...chosen, region: where }, tools.log);
    identities.set(where, known);
    return known;
  };
  const keys: readonly (string | undefined)[] = tools.keys.length === 0 ? [undefined] : tools.keys;
  return keys.map((key) => {
    const [where = home, own] = regions === undefined ? [home, key] : (key ?? home).split(' ', 2);
    return placeOf(where, own, () => identity(home), tools);
  });
}

/** In order of preference the regions are sites (`ChannelParts.sites`), of which each is asked where none before it can answer. */
export function sitesOf(
  { regions, regionOrder }: PlaceOptions,
  places: readonly Place[],
): { readonly sites?: readonly number[] } {
  if (regions === undefined || regionOrder === 'turns') return {};
  return { sites: places.map(({ region }) => regions.indexOf(region)) };
}

/** The region that an address names; for one that names none, such as a proxy's, the one that AWS itself takes. */
function regionIn(baseUrl: string | undefined): string | undefined {
  if (baseUrl === undefined) return undefined;
  return /bedrock-runtime(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d)\./.exec(baseUrl)?.[1] ?? 'us-east-1';
}

function placeOf(
  region: string,
  key: string | undefined,
  identity: () => AwsIdentity,
  { log }: Tools,
): Place {
  for (const secret of [key, ...(key?.split('|') ?? [])]) if (secret) hideSecret(secret);
  const [accessKeyId = '', secretAccessKey, sessionToken] = (key ?? '').split('|').map((part) => part.trim());
  if (secretAccessKey !== undefined) {
    const own = { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
    return { region, credentials: () => Promise.resolve(own), forget() {} };
  }
  if (key !== undefined) return { region, apiKey: key, forget() {} };
  const found = identity();
  const told = refusalTeller(log, {
    who: `Amazon Bedrock in ${region}`,
    advice: `Check that it may call bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream for this model in ${region}, that the account has access to the model there, and that the clock of this machine is right.`,
  });
  return { region, credentials: () => found.credentials(), told, forget: () => found.forget() };
}

/** Where the models of a region are asked. */
export function bedrockEndpoint(region: string): string {
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
}
