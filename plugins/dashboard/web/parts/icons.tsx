/** Icons and the mark of the dashboard, as SVG. */
const paths = {
  overview: 'M2 13.500V9.500m4 4V5m4 8.500V7.500m4 6V2.500',
  live: 'M1.500 8h3l2-5.500 3 11 2-5.500h3',
  usage: 'M3 4h10M3 8h10M3 12h6',
  keys: 'M10.500 2a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7ZM8 8l-5.500 5.500M4 12l1.800 1.800',
  owners:
    'M6 7.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM1.500 13.500c0-2.500 2-4 4.500-4s4.500 1.500 4.500 4M10.500 2.700a2.500 2.500 0 0 1 0 4.600M12 9.800c1.500.6 2.500 1.900 2.500 3.700',
  users: 'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM2.500 14c.5-3 2.700-4.500 5.500-4.500s5 1.500 5.500 4.500',
  account: 'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM2.500 14c.5-3 2.700-4.500 5.500-4.500s5 1.500 5.500 4.500',
  spend:
    'M8 1.500v13M11 4.500C10.500 3.500 9.500 3 8 3 6 3 5 4 5 5.200 5 8.500 11.500 7 11.500 10.500c0 1.500-1.300 2.500-3.500 2.500-1.800 0-3-.7-3.500-2',
  channels:
    'M3.500 5.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4Zm9 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM3.500 5.500v4a3 3 0 0 0 3 3h4M12.500 10.500v-4a3 3 0 0 0-3-3h-4',
  models:
    'M8 1.500 14 4.800v6.400L8 14.500 2 11.200V4.800L8 1.500Zm0 6.700L2.200 5M8 8.200 13.800 5M8 8.200v6',
  playground: 'M4.500 2.500v11l9-5.500-9-5.500Z',
  processes: 'M2.500 2.500h11v4h-11zM2.500 9.500h11v4h-11zM5 4.500h.01M5 11.500h.01',
  tokens: 'M2.500 4.500h11v7h-11zM5 8h.01M8 8h.01M11 8h.01',
  audit:
    'M8 1.500 13.500 4v4c0 3.200-2.300 5.600-5.500 6.500C4.800 13.600 2.500 11.200 2.500 8V4L8 1.500ZM5.700 8l1.700 1.700 3-3.200',
  config:
    'M2 4.500h6.500m3.500 0H14M2 11.500h2m3.500 0H14M10.200 6.200a1.700 1.700 0 1 0 0-3.400 1.700 1.700 0 0 0 0 3.400ZM5.800 13.200a1.700 1.700 0 1 0 0-3.400 1.700 1.700 0 0 0 0 3.400Z',
  alerts:
    'M8 1.500a4 4 0 0 0-4 4c0 4-1.500 5.500-1.500 5.500h11S12 9.500 12 5.500a4 4 0 0 0-4-4ZM6.500 13.500a1.600 1.600 0 0 0 3 0',
  guide: 'M3 14V2.500h8.500L10 5.500l1.500 3H3',
  lock: 'M3.500 7.500h9v6h-9zM5.500 7.500v-2a2.500 2.500 0 0 1 5 0v2',
  check: 'm3 8.500 3.500 3.500L13 4.500',
  theme: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2Zm0 0v12M8 4.500l4.500 0M8 8h6M8 11.500h4.500',
  leave: 'M6 2.500H3v11h3M7 8h7m-2.500-2.500L14 8l-2.500 2.500',
  plus: 'M8 3v10M3 8h10',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  close: 'm4 4 8 8m0-8-8 8',
  download: 'M8 2v8.500m-3.500-3.500L8 10.500 11.500 7M2.500 13.500h11',
  empty: 'M2 9.500 4 3h8l2 6.500V13H2V9.500Zm0 0h3.500l1 1.500h3l1-1.500H14',
  warning: 'M8 2 15 13.500H1L8 2Zm0 4.500v3.500m0 1.500v.5',
} as const;

/** The icons there are. */
export type IconName = keyof typeof paths;

/** An icon beside a label. Hidden from screen readers, because the label has the same meaning. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg
      className="icon"
      viewBox="0 0 16 16"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={paths[name]} />
    </svg>
  );
}

/** The gate and the water. */
export function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true" fill="none">
      <rect width="32" height="32" rx="7" fill="#0d6e78" />
      <path d="M9 6v20M23 6v20" stroke="#fff" strokeWidth="2.6" strokeLinecap="round" />
      <path d="M9 9h14v6H9z" fill="#fff" opacity=".92" />
      <path
        d="M12 20c1.400-1.300 2.600-1.300 4 0s2.600 1.300 4 0M12 24.500c1.400-1.300 2.600-1.300 4 0s2.600 1.300 4 0"
        stroke="#8fe3ea"
        strokeWidth="1.900"
        strokeLinecap="round"
      />
    </svg>
  );
}
