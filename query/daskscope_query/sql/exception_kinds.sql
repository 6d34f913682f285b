-- reads: exceptions
-- One cluster's exceptions, alike ones together, most frequent first. `family`: the same for those whose
-- texts differ only in what differs from case to case.
SELECT coalesce(origin, 'user') AS origin, type, text, family_id(origin, type, family_text(text)) AS family, capped(sum(count)) AS count
FROM exceptions
WHERE cluster = $cluster
GROUP BY ALL
ORDER BY count DESC, type, text, origin
