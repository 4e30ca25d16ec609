/** Bedrock's rerank requests and replies. */
import { wrongValue } from '../../sdk/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { RerankRequest, RerankResult } from '../../model/rerank.ts';
import type { Codec, EncodedRequest, EncodeTarget, ReplyContext, WholeEncoder } from '../../sdk/format.ts';
import {
  given,
  optionalObject,
  optionalNumber,
  requiredArray,
  requiredModel,
  requiredObject,
  requiredString,
} from '../_shared/check.ts';
import { nameInAddress } from '../_shared/model-address.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import {
  decodeRerank,
  estimateRerank,
  reportRerankLimits,
  rankedScores,
  documentText,
} from '../_shared/rerank.ts';
import { unusableResponse } from '../_shared/upstream-error/index.ts';
import { formatName } from './wire.ts';

/*
 * Rerank of the agent runtime.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_agent-runtime_Rerank.html
 */

const path = '/rerank';

/** Maximum number of documents of one request, as the API has it. */
const mostSources = 1000;

const modelPath = 'rerankingConfiguration.bedrockRerankingConfiguration.modelConfiguration.modelArn';

interface Configuration {
  readonly model: string;
  readonly topN: number | undefined;
  readonly fields: JsonObject;
}

function configurationIn(body: JsonObject): Configuration {
  const at = 'rerankingConfiguration.bedrockRerankingConfiguration';
  const outer = requiredObject(body.rerankingConfiguration, 'rerankingConfiguration');
  const inner = requiredObject(outer.bedrockRerankingConfiguration, at);
  const model = requiredObject(inner.modelConfiguration, `${at}.modelConfiguration`);
  const name = nameInAddress(requiredModel(model.modelArn, modelPath));
  const topN = optionalNumber(inner.numberOfResults, `${at}.numberOfResults`, {
    min: 1,
    max: mostSources,
    integer: true,
  });
  const fields = optionalObject(
    model.additionalModelRequestFields,
    `${at}.modelConfiguration.additionalModelRequestFields`,
  );
  return { model: name, topN, fields: fields ?? {} };
}

function queryIn(body: JsonObject): string {
  const queries = requiredArray(body.queries, 'queries');
  if (queries.length !== 1) throw wrongValue('queries', 'a list of one query');
  const query = requiredObject(queries[0], 'queries[0]');
  const text = requiredObject(query.textQuery, 'queries[0].textQuery');
  return requiredString(text.text, 'queries[0].textQuery.text');
}

function documentIn(source: JsonValue, index: number): string | JsonObject {
  const at = `sources[${index}].inlineDocumentSource`;
  const inline = requiredObject(requiredObject(source, `sources[${index}]`).inlineDocumentSource, at);
  if (given(inline.jsonDocument)) return requiredObject(inline.jsonDocument, `${at}.jsonDocument`);
  const text = requiredObject(inline.textDocument, `${at}.textDocument`);
  return requiredString(text.text, `${at}.textDocument.text`);
}

function decodeRequest(body: JsonObject): RerankRequest {
  const { model, topN, fields } = configurationIn(body);
  // All results are in one response, so there is no next page.
  if (given(body.nextToken)) throw wrongValue('nextToken', 'absent: all results come in one response');
  const sources = requiredArray(body.sources, 'sources');
  if (sources.length === 0 || sources.length > mostSources)
    throw wrongValue('sources', `a list of 1 to ${mostSources} documents`);
  return {
    operation: 'rerank',
    format: formatName,
    model,
    query: queryIn(body),
    documents: sources.map(documentIn),
    returnDocuments: false,
    ...(topN === undefined ? {} : { topN }),
    ...(Object.keys(fields).length === 0
      ? {}
      : { extra: { [formatName]: { additionalModelRequestFields: fields } } }),
  };
}

function encodeRequest(request: RerankRequest, { model, drop }: EncodeTarget): EncodedRequest {
  reportRerankLimits(request, drop);
  reportForeign(request.extra, formatName, undefined, drop);
  const { query, documents, rankFields, topN, extra } = request;
  return {
    path,
    body: {
      queries: [{ type: 'TEXT', textQuery: { text: query } }],
      sources: documents.map((document) => ({
        type: 'INLINE',
        inlineDocumentSource: { type: 'TEXT', textDocument: { text: documentText(document, rankFields) } },
      })),
      rerankingConfiguration: {
        type: 'BEDROCK_RERANKING_MODEL',
        bedrockRerankingConfiguration: {
          modelConfiguration: { modelArn: model, ...extra?.[formatName] },
          ...(topN === undefined ? {} : { numberOfResults: topN }),
        },
      },
    },
  };
}

/** Returns a provider's results with the score under the name that other providers give it. */
function namedAsElsewhere(body: JsonObject): JsonObject {
  if (!Array.isArray(body.results)) return body;
  const results = (body.results as readonly JsonValue[]).map((one) =>
    isObject(one) ? { index: one.index, relevance_score: one.relevanceScore } : one,
  );
  return { ...body, results };
}

function encodeWhole({ body }: ReplyContext): WholeEncoder {
  let result: RerankResult | undefined;
  return {
    event(event) {
      if (event.type === 'result') result = event.value as RerankResult;
    },
    end() {
      if (result === undefined) throw unusableResponse('gave no scores');
      const { topN } = configurationIn(body);
      const count = requiredArray(body.sources, 'sources').length;
      const scores = rankedScores(result.scores, count).slice(0, topN ?? count);
      return { results: scores.map(({ index, score }) => ({ index, relevanceScore: score })) };
    },
  };
}

/** Documents in the order of how well they answer a query, as the agent runtime has it. */
export const rerank: Codec<RerankRequest> = defineCodec<RerankRequest>({
  format: formatName,
  operation: 'rerank',
  path,
  peek: (body) => ({ model: configurationIn(body).model, stream: false }),
  // As in the other rerank format, the gateway sorts and cuts for all providers.
  passes: () => false,
  decodeRequest,
  encodeRequest,
  decodeWhole: (body) => decodeRerank(namedAsElsewhere(body), formatName),
  encodeWhole,
  estimate: estimateRerank,
});
