/** Time zones known to the browser. */
export const ZONES: string[] = Intl.supportedValuesOf("timeZone");
