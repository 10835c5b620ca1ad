import { Button } from "@mantine/core";

import { Icon } from "../components/Icon";
import { useLanguage } from "../i18n";

/** Names the other language in that language. */
export function LanguageSwitch() {
  const { language, setLanguage } = useLanguage();
  const [other, name] =
    language === "en" ? (["zh", "中文"] as const) : (["en", "English"] as const);
  return (
    <Button
      variant="subtle"
      color="gray"
      size="compact-sm"
      c="var(--mantine-color-text)"
      lang={other}
      onClick={() => setLanguage(other)}
      leftSection={<Icon name="language" />}
    >
      {name}
    </Button>
  );
}
