import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import azureFoundry from '../../channels/azure-foundry.ts';
import mistral from '../../channels/mistral/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import modelAccess from '../../plugins/model-access.ts';
import providerObjects from '../../plugins/provider-objects/index.ts';
import quota from '../../plugins/quota/index.ts';
import { Provider, refusal, sentJson } from './_provider.ts';

/** Part of the official client that is used here, because its generated types are large. */
interface MistralClient {
  readonly ocr: {
    process(request: object): Promise<{
      readonly pages: readonly { readonly index: number; readonly markdown: string }[];
      readonly usageInfo: object;
    }>;
  };
}
const packageName: string = '@mistralai/mistralai';
const { Mistral } = (await import(packageName)) as {
  readonly Mistral: new (options: object) => MistralClient;
};

const mistralKey = 'mistral-key-0a1b2c3d4e5f';
const page = {
  index: 0,
  markdown: '# Hello',
  images: [],
  hyperlinks: [],
  dimensions: { dpi: 200, height: 2200, width: 1700 },
};
const read = (pages: number, more: object = {}) => ({
  pages: Array.from({ length: pages }, (_, index) => ({ ...page, index })),
  model: 'mistral-ocr-2512',
  document_annotation: null,
  usage_info: { pages_processed: pages, doc_size_bytes: 3002 },
  ...more,
});

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [modelAccess(), quota(), providerObjects()],
    channels: [
      mistral({ key: mistralKey, baseUrl: `${url}/v1` }),
      // Before Mistral's own pattern, which fits this model as well.
      azureFoundry({ key: 'azure-key', baseUrl: url, models: ['mistral-document-ai-*'], priority: 1 }),
    ],
    routing: { attempts: 1 },
  }));
});
afterAll(() => provider.close());

const clientOf = (apiKey: string): MistralClient =>
  new Mistral({ apiKey, serverURL: provider.gateway.url, retryConfig: { strategy: 'none' } });

async function keyWith(dollars: number, models?: readonly string[]) {
  const budget = { unit: 'micro-dollar', period: 'total', amount: dollars * 1e6 } as const;
  const { value, record } = await provider.gateway.apiKeys.create({
    name: 'reader',
    budgets: [budget],
    ...(models === undefined ? {} : { models }),
  });
  const spent = async (): Promise<number> => {
    const [state] = await openLedger(provider.gateway.stores).states(record.id, [budget]);
    return (state?.spent ?? 0) / 1e6;
  };
  return { value, client: clientOf(value), spent };
}

const url = { type: 'document_url', documentUrl: 'https://example.com/a.pdf' } as const;

describe('a document', () => {
  test('is read by the official client of Mistral', async () => {
    provider.says(() => ({ body: read(2) }));
    const { client, spent } = await keyWith(5);
    const reply = await client.ocr.process({
      model: 'mistral-ocr-2512',
      document: url,
      pages: '0-1',
      includeImageBase64: true,
      tableFormat: 'html',
    });
    expect(reply.pages.map(({ markdown }) => markdown)).toEqual(['# Hello', '# Hello']);
    expect(reply.usageInfo).toEqual({ pagesProcessed: 2, docSizeBytes: 3002 });
    expect(provider.paths).toEqual(['POST /v1/ocr']);
    expect(provider.requests[0]?.headers.authorization).toBe(`Bearer ${mistralKey}`);
    expect(sentJson(provider.requests[0]!)).toMatchObject({
      model: 'mistral-ocr-2512',
      document: { type: 'document_url', document_url: 'https://example.com/a.pdf' },
      pages: '0-1',
      include_image_base64: true,
      table_format: 'html',
    });
    // 2 dollars for 1,000 pages: https://mistral.ai/pricing#api-pricing
    await expect.poll(spent).toBe(0.004);
  });

  test.each([
    ['as many pages as were read', {}],
    ['those that the provider tells', { usage_info: { pages_processed: 2, pages_processed_annotation: 2 } }],
  ])('that is annotated costs 3 dollars more for 1,000 pages: %s', async (_what, more) => {
    provider.says(() => ({ body: read(2, more) }));
    const { client, spent } = await keyWith(6);
    await client.ocr.process({
      model: 'mistral-ocr-2512',
      document: url,
      documentAnnotationFormat: {
        type: 'json_schema',
        jsonSchema: { name: 'page', schemaDefinition: { type: 'object' } },
      },
    });
    await expect.poll(spent).toBe(0.01);
  });

  test.each([
    ['all pages of which may be read', { document: url }, 1.9, 2.1],
    ['of which three pages are named', { document: url, pages: [0, 4, 7] }, 0.005, 0.007],
    [
      'that is an image',
      { document: { type: 'image_url', imageUrl: 'https://example.com/a.png' } },
      0.001,
      0.003,
    ],
  ] as const)('%s is read when the budget holds it', async (_what, parameters, little, enough) => {
    provider.says(() => ({ body: read(1) }));
    const request = { model: 'mistral-ocr-2512', ...parameters };
    const poor = await keyWith(little);
    await expect(poor.client.ocr.process(request)).rejects.toMatchObject({ statusCode: 429 });
    expect(provider.requests).toEqual([]);
    const rich = await keyWith(enough);
    await expect(rich.client.ocr.process(request)).resolves.toMatchObject({ pages: [{ index: 0 }] });
  });

  test('is not read by a model that the key may not use', async () => {
    provider.says(() => ({ body: read(1) }));
    const { client } = await keyWith(5, ['mistral-small-*']);
    const call = client.ocr.process({ model: 'mistral-ocr-2512', document: url });
    await expect(call).rejects.toMatchObject({ statusCode: 403 });
    expect(provider.requests).toEqual([]);
  });

  test('that is a kept file is read by its owner alone', async () => {
    provider.says(({ url: path = '' }) =>
      path.endsWith('/files')
        ? {
            body: {
              id: 'file-of-one',
              object: 'file',
              bytes: 5,
              created_at: 1,
              filename: 'a.pdf',
              purpose: 'ocr',
            },
          }
        : { body: read(1) },
    );
    const [owner, other] = [await keyWith(5), await keyWith(5)];
    const openai = new OpenAI({ apiKey: owner.value, baseURL: `${provider.gateway.url}/v1`, maxRetries: 0 });
    const { id } = await openai.files.create(
      { file: await toFile(Buffer.from('%PDF-'), 'a.pdf'), purpose: 'ocr' as 'user_data' },
      { headers: { 'x-sluice-model': 'mistral-ocr-2512' } },
    );
    const request = { model: 'mistral-ocr-2512', document: { type: 'file', fileId: id } } as const;
    await expect(other.client.ocr.process(request)).rejects.toMatchObject({ statusCode: 404 });
    await expect(owner.client.ocr.process(request)).resolves.toMatchObject({ pages: [{ index: 0 }] });
    expect(provider.paths).toEqual(['POST /v1/files', 'POST /v1/ocr']);
  });

  test('is read by Mistral behind Azure', async () => {
    provider.says(() => ({ body: read(1) }));
    const { client, spent } = await keyWith(5);
    const document = { type: 'document_url', documentUrl: 'data:application/pdf;base64,JVBERi0=' } as const;
    await client.ocr.process({ model: 'mistral-document-ai-2512', document });
    expect(provider.paths).toEqual(['POST /providers/mistral/azure/ocr']);
    expect(provider.requests[0]?.headers['api-key']).toBe('azure-key');
    await expect.poll(spent).toBe(0.003);
  });

  test.each([
    [401, { message: 'Unauthorized', request_id: 'x' }, 502],
    [422, { detail: [{ loc: ['body', 'pages'], msg: 'Field required', type: 'missing' }] }, 400],
    [429, { message: 'Requests rate limit exceeded' }, 429],
    [200, { text: 'none' }, 502],
  ])('is not read where the provider answers %i and %j', async (status, body, expected) => {
    provider.says(() => ({ status, body }));
    const failure = await refusal(
      clientOf(provider.gateway.key)
        .ocr.process({ model: 'mistral-ocr-2512', document: url })
        .catch((error: Error & { statusCode: number }) => {
          throw Object.assign(error, { status: error.statusCode });
        }),
    );
    expect(failure.status).toBe(expected);
    expect(failure.message).not.toContain(mistralKey);
  });
});
