import type { OcrRequest } from 'sluice/channel-kit';
import type { DemoOperation } from './demo-operation.ts';

/** Returns one page for each requested page, with a description of the request as its text. */
export const ocr: DemoOperation<OcrRequest> = {
  speaks: ['ocr'],
  text: ({ document }) => String(document['document_name'] ?? ''),
  answer({ document, pages: count = 1 }) {
    const kind = ['document_url', 'image_url', 'file_id'].find((name) => document[name] !== undefined);
    const pages = Array.from({ length: count }, (_, index) => ({
      index,
      markdown: `# Page ${index + 1}\n\nRead from ${kind ?? 'nothing'}.`,
      images: [],
      dimensions: { dpi: 200, height: 2200, width: 1700 },
    }));
    return [
      { type: 'result', value: { pages } },
      {
        type: 'usage',
        usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0, units: { pages: count } },
      },
    ];
  },
};
