-- reads: audit
-- What was done to an account, latest first; `actor`, `action`, `since` and `until` narrow it.
SELECT *
FROM audit
WHERE ($actor::VARCHAR IS NULL OR actor = $actor)
  AND ($action::VARCHAR IS NULL OR "action" = $action)
  AND ($since::TIMESTAMPTZ IS NULL OR "at" >= $since)
  AND ($until::TIMESTAMPTZ IS NULL OR "at" <= $until)
ORDER BY "at" DESC, boot DESC
LIMIT $limit OFFSET $offset
