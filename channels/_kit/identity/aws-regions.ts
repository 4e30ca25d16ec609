/** Resolves the AWS regions that a channel calls and the credentials for each, from its options and keys. */
import { z } from 'zod';
import { hideSecret, type ChannelOptions, type ChannelTools, type Upstream, type KeyRegion } from 'sluice';
import { AwsIdentity } from './aws.ts';
import type { AwsCredentials } from './aws-signature.ts';
import { refusalTeller } from '../http/refusals.ts';

/** Channel options for regions and identity. */
export const regionOptions = {
  region: z.string().min(1).optional().describe('AWS region of the models: `us-east-1`'),
  regions: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe(
      'AWS regions of the models. A region that fails repeatedly is not used until its cooldown ends',
    ),
  regionOrder: z
    .enum(['turns', 'preference'])
    .default('turns')
    .describe(
      '`turns`: regions are used in turn. `preference`: a later region is used only when all earlier ones fail',
    ),
  profile: z.string().min(1).optional().describe('profile of the shared AWS configuration files'),
  roleArn: z.string().startsWith('arn:').optional().describe('ARN of a role that Sluice assumes'),
  externalId: z.string().min(1).optional().describe('external id that the trust policy of the role requires'),
};

type RegionOptions = z.output<z.ZodObject<typeof regionOptions>> & Pick<ChannelOptions, 'baseUrl'>;
type Tools = Pick<ChannelTools, 'keys' | 'log'>;

/** Services that channels call: name for the log, pattern that finds the region in an endpoint, and IAM actions that an identity needs. */
const services = {
  bedrock: {
    name: 'Amazon Bedrock',
    hosts: /bedrock-(?:runtime(?:-fips)?|mantle)\.([a-z]{2}(?:-[a-z]+)+-\d)\./,
    actions: 'bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream',
  },
  sagemaker: {
    name: 'Amazon SageMaker',
    hosts: /runtime(?:-fips)?\.sagemaker\.([a-z]{2}(?:-[a-z]+)+-\d)\./,
    actions: 'sagemaker:InvokeEndpoint and sagemaker:InvokeEndpointWithResponseStream',
  },
};
type Service = keyof typeof services;

/** A region, and the API key or credentials for it. */
export interface RegionAccess {
  readonly region: string;
  /** Index of its key in `tools.keys`; undefined where it has none. */
  readonly key?: number;
  readonly apiKey?: string;
  readonly credentials?: () => Promise<AwsCredentials>;
  /** Logs when the identity is refused: see {@link refusalTeller}. */
  readonly logRefusal?: (answer: Upstream) => Upstream;
  forget(): void;
}

/** Returns the places of a channel: each of its regions with each of its keys. Throws where no region is named. */
export function accessesOf(chosen: RegionOptions, tools: Tools, service: Service): readonly RegionAccess[] {
  const { region, regions, baseUrl } = chosen;
  const home = region ?? regions?.[0] ?? regionIn(baseUrl, service);
  if (home === undefined)
    throw new Error("it needs a region: region: 'us-east-1', or region: env('AWS_REGION').");
  const identities = new Map<string, AwsIdentity>();
  const identity = (where: string): AwsIdentity => {
    const known = identities.get(where) ?? new AwsIdentity({ ...chosen, region: where }, tools.log);
    identities.set(where, known);
    return known;
  };
  const { keys } = tools;
  return [...new Set(regions ?? [home])].flatMap((where): readonly RegionAccess[] => {
    const at = (key?: string): RegionAccess =>
      accessOf({ region: where, key, service }, () => identity(home), tools);
    return keys.length === 0 ? [at()] : keys.map((key, index) => ({ ...at(key), key: index }));
  });
}

/** Returns the regions of a channel with several. Each is a site, in order of preference, which is used only when no earlier one can respond. */
export function regionsOf(
  { regions, regionOrder }: RegionOptions,
  accesses: readonly RegionAccess[],
): { readonly regions?: readonly KeyRegion[] } {
  if (regions === undefined) return {};
  return {
    regions: accesses.map(({ region, key }) => ({
      region,
      ...(key === undefined ? {} : { key }),
      ...(regionOrder === 'turns' ? {} : { site: regions.indexOf(region) }),
    })),
  };
}

/** Returns the region that an address names; for one that names none, such as a proxy's, the one that AWS itself takes. */
function regionIn(baseUrl: string | undefined, service: Service): string | undefined {
  return baseUrl === undefined ? undefined : (services[service].hosts.exec(baseUrl)?.[1] ?? 'us-east-1');
}

interface AccessOptions {
  readonly region: string;
  readonly key: string | undefined;
  readonly service: Service;
}

function accessOf(
  { region, key, service }: AccessOptions,
  identity: () => AwsIdentity,
  { log }: Tools,
): RegionAccess {
  for (const secret of [key, ...(key?.split('|') ?? [])]) if (secret) hideSecret(secret);
  const [accessKeyId = '', secretAccessKey, sessionToken] = (key ?? '').split('|').map((part) => part.trim());
  if (secretAccessKey !== undefined) {
    const own = { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
    return { region, credentials: () => Promise.resolve(own), forget() {} };
  }
  if (key !== undefined) return { region, apiKey: key, forget() {} };
  const found = identity();
  const { name, actions } = services[service];
  const logRefusal = refusalTeller(log, {
    who: `${name} in ${region}`,
    advice: `Check that it may call ${actions} for this model in ${region}, that the account has access to the model there, and that the clock of this machine is right.`,
  });
  return { region, credentials: () => found.credentials(), logRefusal, forget: () => found.forget() };
}

/** Returns the address of a service in a region: `https://runtime.sagemaker.eu-west-1.amazonaws.com`. */
export function awsEndpoint(service: string, region: string): string {
  return `https://${service}.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
}
