-- reads: exceptions, groups
-- The exceptions of one cluster, or of one `computation` ('<boot>-<no>'), by family, most frequent first: each told as
-- its latest failure was, `n_families` in all. What failed before its group was known is of no computation.
WITH named AS (SELECT boot, no, boot || '-' || computation AS computation FROM groups WHERE cluster = $cluster),
mine AS (
    SELECT
        e.* REPLACE (coalesce(e.origin, 'user') AS origin),
        family_id(e.origin, e.type, family_text(e.text)) AS family
    FROM exceptions e
    LEFT JOIN named g ON g.boot = e.boot AND g.no = e.group_no
    WHERE e.cluster = $cluster AND ($computation::VARCHAR IS NULL OR g.computation = $computation)
)
SELECT
    family,
    any_value(origin) AS origin,
    any_value(type) AS type,
    arg_max("text", (last_at, boot, no)) AS "text",
    arg_max(traceback, (last_at, boot, no)) AS traceback,
    arg_max(key, (last_at, boot, no)) AS key,
    arg_max(prefix, (last_at, boot, no)) AS prefix,
    min(first_at) AS first_at,
    max(last_at) AS last_at,
    capped(sum(count)) AS count,
    count(*) OVER () AS n_families
FROM mine
GROUP BY family
ORDER BY count DESC, type, "text", family
LIMIT $limit
