// SPDX-License-Identifier: MIT
// std::set, std::multiset, std::map behind functions of C.
#include <map>
#include <set>
#include <string>

#include "stl_model.h"

struct stl_model {
	stl_kind kind;
	std::set<std::string> set;
	std::multiset<std::string> multiset;
	std::map<std::string, std::string> map;
};

static std::string text(stl_bytes b)
{
	return std::string(b.bytes, b.size);
}

stl_model *stl_create(stl_kind kind)
{
	return new stl_model{kind, {}, {}, {}};
}

void stl_destroy(stl_model *m)
{
	delete m;
}

bool stl_insert(stl_model *m, stl_bytes key, stl_bytes value)
{
	switch (m->kind) {
	case STL_SET:
		return m->set.insert(text(key)).second;
	case STL_MULTISET:
		m->multiset.insert(text(key));
		return true;
	default:
		return m->map.insert({text(key), text(value)}).second;
	}
}

size_t stl_erase(stl_model *m, stl_bytes key)
{
	return m->set.erase(text(key)) + m->multiset.erase(text(key)) + m->map.erase(text(key));
}

void stl_erase_one(stl_model *m, stl_bytes key)
{
	auto it = m->multiset.find(text(key));

	if (it != m->multiset.end())
		m->multiset.erase(it);
	m->set.erase(text(key));
	m->map.erase(text(key));
}

size_t stl_count(const stl_model *m, stl_bytes key)
{
	return m->set.count(text(key)) + m->multiset.count(text(key)) + m->map.count(text(key));
}

stl_bytes stl_value(const stl_model *m, stl_bytes key)
{
	auto it = m->map.find(text(key));

	if (it == m->map.end())
		return {nullptr, 0};
	return {it->second.data(), it->second.size()};
}

size_t stl_keys(const stl_model *m)
{
	std::set<std::string> different(m->multiset.begin(), m->multiset.end());

	return m->set.size() + different.size() + m->map.size();
}

size_t stl_size(const stl_model *m)
{
	return m->set.size() + m->multiset.size() + m->map.size();
}

void stl_clear(stl_model *m)
{
	*m = stl_model{m->kind, {}, {}, {}};
}

void stl_swap(stl_model *a, stl_model *b)
{
	std::swap(*a, *b);
}

void stl_assign(stl_model *to, const stl_model *from)
{
	*to = *from;
}

void stl_merge(stl_model *to, const stl_model *from)
{
	const stl_model copy = *from;

	to->set.insert(copy.set.begin(), copy.set.end());
	to->multiset.insert(copy.multiset.begin(), copy.multiset.end());
	to->map.insert(copy.map.begin(), copy.map.end());
}
